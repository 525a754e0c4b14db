// Package expression writes the boolean expressions that select rows on a server,
// those of filters among them. A filter is translated where every engine agrees on
// its meaning, else to something weaker: whoever asks has to check what comes back.
package expression
