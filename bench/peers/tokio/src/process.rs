// What the kernel says of this process: its processor time, its memory.

use crate::harness::require;

pub fn cpu_seconds() -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    // SAFETY: getrusage fills the structure that it is given; all zeros is a value of it.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        require(libc::getrusage(libc::RUSAGE_SELF, &mut used) == 0, "getrusage");
        used
    };
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

pub struct Memory {
    pub resident_bytes: f64,
    pub page_table_bytes: f64,
}

pub fn memory_now() -> Memory {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        1024.0 * line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0)
    };
    Memory { resident_bytes: bytes("VmRSS:"), page_table_bytes: bytes("VmPTE:") }
}
