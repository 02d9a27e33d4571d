package memengine

// ProbeEvery is how often an engine looks whether its journal can be written to again.
const ProbeEvery = probeEvery
