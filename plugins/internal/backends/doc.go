// Package backends lets one voter ask several services: other keys, addresses, APIs or
// models. The first of them is the one that the stage's own arguments describe; it is called
// main.
//
// Each answer has a service of its own that it is to come from (Choose): main, or, where the file
// gives shares, the one that a weighted rendezvous hash of the question picks, so that a resumed
// run and a replay pick the same, and another service takes only its share from the
// others. Where that service is down, wants a pause, denies the voter or is out of quota, the others are asked
// in the order of the file (Do). One that has denied several requests in a row is left out for the rest of
// the run. Where none serves, the rows wait as they do for a single service.
//
// Limits and circuit breakers are those of each service, by its address, and by its name as
// well where several have the same address.
//
// The package does not know what is asked. What is cached, and under which model, is for the voter to
// decide.
package backends
