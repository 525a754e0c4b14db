// Package retry calls stages again after failures that may pass: with single rows of a batch, with
// the whole batch, or, if a row may be at fault, with parts of it, until that row stands alone. So a
// row that ends the stage's process or takes all of its time fails alone.
//
// The cost is bounded. A row among n that ends the process ends it once for each halving, log2 n
// times, besides the times that the whole batch did; alone, it ends the process up to five more
// times, since it is not blamed for the end of a process that had answered others before. A row that
// hangs fails within the timeout of its stage, counted from the first call that it was in; the work
// on the other rows of the batch, one after the other, comes on top only where it takes longer than
// a quarter of that. Each further row that hangs takes half of the timeout. A batch without any
// answer is given up after a few single rows. A call that others held up before it was sent is
// repeated, up to ten times in a row.
//
// Nothing else in the engine sends a request again. Others return an error, whose code says what is done here:
//
//	the request was not sent, or another one    Resend  at once, to the next process
//	  had to end the process (LostError)
//	the process ended (ErrCrashed)              Resend  3 times, all but the first alone
//	  still, with several rows                  Work    in halves, each alone and once
//	  still, with one row                       Work    5 times, while the process had answered others
//	a change was lost with the process,         Work    Retries times, 0.2 s to 26 s apart
//	  CodeTransient
//	CodeTransient, RetryAfter (429, 503, a      Work    after that time, for 2 minutes without counting
//	  breaker of package governor)                      it; one of over 5 minutes becomes CodeUnavailable
//	Bounded: no answer in time                  Work    each row alone and once; 10 times if others held it up
//	CodeInternal, CodeInvalid, CodeRefused      Work    in halves, once
//	CodeUnavailable, Stopped, Cancelled,        -       not at all: a resumed run does
//	  Deadline of a service
//	sdk.Pending                                 PendingWork  collects after PollAfter, 2 s to 1 min
//
// What is not the same request is asked elsewhere: another answer where none was accepted (resamples, run/stage),
// a request in the form that a model takes (plugins/internal/chatmodel), another service (backends). Stages
// with a connection of their own retry on it, such as that to Milvus (retry_time).
//
// The package does not know what rows are. Its caller says how often to retry, and what ends it.
package retry
