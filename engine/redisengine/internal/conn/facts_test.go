package conn

import "testing"

// Replicas count that have what their master has.
func TestFollowersAreOnline(t *testing.T) {
	n := followers(map[string]string{
		"connected_slaves": "2", "slave0": "ip=10.0.0.1,port=1,state=online,offset=9,lag=0", "slave1": "ip=10.0.0.2,port=1,state=wait_bgsave,offset=0,lag=0",
		"slave_read_only": "1",
	})
	if n != 1 {
		t.Errorf("%d replicas count", n)
	}
}
