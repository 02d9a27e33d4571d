package embedded

import "github.com/prometheus/client_golang/prometheus"

// Collectors are what stands before the engine and counts for itself; they are
// for httpapi.Config, which shows the service's numbers without being told.
func (n *Node) Collectors() []prometheus.Collector {
	return []prometheus.Collector{n.Limits, n.Audiences, n.Tickets, n.Rooms, n.Overload}
}
