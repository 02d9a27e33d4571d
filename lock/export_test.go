package lock

import (
	"reflect"
	"sync"
	"unsafe"
)

// Watches counts the watches that ZooKeeper's client keeps for a locker, of which it
// tells nobody.
func (z *ZooKeeper) Watches() (n int) {
	client := reflect.ValueOf(z.s.conn).Elem()
	mu := (*sync.Mutex)(unsafe.Pointer(client.FieldByName("watchersLock").UnsafeAddr()))
	mu.Lock()
	defer mu.Unlock()
	for each := client.FieldByName("watchers").MapRange(); each.Next(); {
		n += each.Value().Len()
	}
	return n
}

// Ended is what a locker takes for the end of a context.
var Ended = ended
