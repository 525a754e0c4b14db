// Package sdktest is the conformance suite: what every stage owes the engine,
// whatever it computes. A plugin's test calls Stage for each of its stages.
//
// The stage runs behind the real gRPC server, in memory, so that its results
// take the way they take in a pipeline. How well a stage does its work, and
// how its process behaves, are not tested here.
package sdktest
