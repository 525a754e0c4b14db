// Package dropped says of a voter many of whose answers do not count what these are, and what
// would make them count: arguments of the voter or of its prompt. It advises by what the
// answers are and how the file has the arguments; whether the advice is good for the answers'
// accuracy, it cannot know.
package dropped
