/* mc/mc.h: all of libmcrt's C interface. */
#ifndef MC_MC_H
#define MC_MC_H

#include "base.h"
#include "bridge.h"
#include "csp.h"
#include "epoch.h"
#include "inspect.h"
#include "machine.h"
#include "op.h"
#include "runtime.h"
#include "scope.h"
#include "sim.h"
#include "sync.h"

#endif /* MC_MC_H */
