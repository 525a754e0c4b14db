// Package retry calls stages again after failures that may pass. It repeats single rows of a batch,
// or the whole batch. If a row may be the cause, it repeats parts of the batch, until that row stands
// alone. So a row that ends the stage's process or takes all of its time fails alone.
//
// The cost is bounded. If a row among n ends the process, it does so once for each halving, log2 n
// times, and also each time the whole batch is sent. Alone, it ends the process up to five more
// times, since it is not blamed for the end of a process that had answered other rows before. A row
// that hangs fails within the timeout of its stage, counted from the first call with this row. The
// work on the other rows of the batch, one after the other, is extra only if it takes longer than a
// quarter of the timeout. Each further row that hangs takes half of the timeout. A batch without any
// answer is given up after a few single rows. A call that others held up before it was sent is
// repeated, up to ten times in a row.
//
// Nothing else in the engine sends a request again. Other packages return an error, whose code
// decides what happens here:
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
// Other packages send requests that are not the same: another answer if none was accepted (resamples,
// run/stage), a request in a form that a model accepts (plugins/internal/chatmodel), another service
// (backends). Stages with a connection of their own retry on it, such as the connection to Milvus
// (retry_time).
//
// The package does not know what rows are. Its caller says how often to retry, and what ends it.
package retry
