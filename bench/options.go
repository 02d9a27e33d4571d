package main

// options are the flags. run does not check them: with rounds below 1 there is no value to take
// a median of, and the parts panic.
type options struct {
	// only names the parts to run, separated by commas; empty for all.
	only string
	// rounds is how often each measurement is taken; the median is printed.
	rounds int
	// callers is how many claim at once in process, each one claim at a time. claims is how many
	// claims a round of grants has; refusals has 20 times as many, flat a fifth, http 6 %. scatter
	// repeats its users beyond 2^24, so claims stays below.
	// holders is the size of the largest campaign of flat and memory, below 2^24 too.
	callers, claims, holders int
	// against is the bench of another commit to compare with, a path or a name in PATH; empty for none.
	against string
	// profile is the file for a CPU profile; empty for none.
	profile string
}
