package bus

// Role is the part that a process plays in runs.
type Role string

// The roles.
const (
	Caller Role = "caller" // creates runs, publishes batches, reads results, removes runs
	Worker Role = "worker" // reads runs, takes batches, writes results, answers and its own state
)

// Subjects lists what a NATS user may publish and subscribe to. Deny takes precedence over Publish.
type Subjects struct {
	Publish, Deny, Subscribe []string
	Respond                  bool // allow_responses: may reply to questions
}

// Permissions returns the minimal permissions of a role at the servers.
//
// A worker's key also allows what workers do for each other: it can acknowledge any batch, answer any unanswered position, write
// any worker's state, the keeper's record and any key of the answers that has no value yet. It can read all runs. It cannot
// replace a result, an answer or a definition, create, change or remove streams, queues, runs or files, or publish batches.
//
// These rules cover the subjects of requests. A request also names a reply subject, and servers send replies there whatever the
// user may publish: in the account of the streams, a malicious worker could have a batch delivered to a subject that it may not
// publish to. To prevent that, give workers an account of their own, to which these subjects are exported (examples/cluster).
func Permissions(role Role) Subjects {
	reading := []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.MSG.NEXT.*.*", "$JS.ACK.>",
		"$JS.API.CONSUMER.CREATE.*.*.$KV.>"}
	if role == Worker {
		return Subjects{
			Publish: append(reading, "racflow.*.results.*.*", "racflow.*.pieces.*.*", "racflow.*.ask.>", "racflow.*.tell.>",
				"$KV.*.answer.>", "$KV.*.worker.>", "$KV.*.keeper", "$KV.*.lease.>"),
			Deny:      []string{"$JS.API.CONSUMER.CREATE.*.workers.>"},
			Subscribe: []string{"_INBOX.>", "racflow.*.ask.>", "racflow.*.tell.>"},
			Respond:   true,
		}
	}
	return Subjects{
		Publish: append(reading, "$JS.API.CONSUMER.CREATE.*.*.racflow.>", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.DELETE.*", "$JS.API.STREAM.PURGE.*",
			"racflow.>", "$KV.>"),
		Subscribe: []string{"_INBOX.>", "racflow.*.ask.>", "racflow.*.tell.>"},
		Respond:   true,
	}
}
