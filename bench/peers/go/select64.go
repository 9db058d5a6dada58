// The choice of Go's row alt64: Go has no select over an array, so the 64 cases stand here, as a generator would write
// them. channels.go has the rest of the row.
package main

type channels64 [64]chan int64

func selectAny64(from *channels64, messages int) (sum int64) {
	var v int64
	for i := 0; i < messages; i++ {
		select {
		case v = <-from[0]:
		case v = <-from[1]:
		case v = <-from[2]:
		case v = <-from[3]:
		case v = <-from[4]:
		case v = <-from[5]:
		case v = <-from[6]:
		case v = <-from[7]:
		case v = <-from[8]:
		case v = <-from[9]:
		case v = <-from[10]:
		case v = <-from[11]:
		case v = <-from[12]:
		case v = <-from[13]:
		case v = <-from[14]:
		case v = <-from[15]:
		case v = <-from[16]:
		case v = <-from[17]:
		case v = <-from[18]:
		case v = <-from[19]:
		case v = <-from[20]:
		case v = <-from[21]:
		case v = <-from[22]:
		case v = <-from[23]:
		case v = <-from[24]:
		case v = <-from[25]:
		case v = <-from[26]:
		case v = <-from[27]:
		case v = <-from[28]:
		case v = <-from[29]:
		case v = <-from[30]:
		case v = <-from[31]:
		case v = <-from[32]:
		case v = <-from[33]:
		case v = <-from[34]:
		case v = <-from[35]:
		case v = <-from[36]:
		case v = <-from[37]:
		case v = <-from[38]:
		case v = <-from[39]:
		case v = <-from[40]:
		case v = <-from[41]:
		case v = <-from[42]:
		case v = <-from[43]:
		case v = <-from[44]:
		case v = <-from[45]:
		case v = <-from[46]:
		case v = <-from[47]:
		case v = <-from[48]:
		case v = <-from[49]:
		case v = <-from[50]:
		case v = <-from[51]:
		case v = <-from[52]:
		case v = <-from[53]:
		case v = <-from[54]:
		case v = <-from[55]:
		case v = <-from[56]:
		case v = <-from[57]:
		case v = <-from[58]:
		case v = <-from[59]:
		case v = <-from[60]:
		case v = <-from[61]:
		case v = <-from[62]:
		case v = <-from[63]:
		}
		sum += v
	}
	return sum
}
