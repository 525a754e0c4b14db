// Package status says how a run on many machines is: what it is, how far it came, who takes part and
// who lacks what for it, what waits and what it costs.
//
// It reads what the caller, the keeper and the workers put at the servers (package definition), so
// that any machine that may read there can say it; it changes nothing. What is not at the servers,
// such as the results of items, it does not know: the caller's journal does.
//
// Times are the servers': clocks of machines may differ.
package status
