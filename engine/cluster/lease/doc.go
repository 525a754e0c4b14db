// Package lease holds the limits, the budget and the circuit breakers of a run for all the
// machines that take part in it.
package lease
