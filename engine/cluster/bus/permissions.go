package bus

// Role is what a process does with runs.
type Role string

// Roles.
const (
	Caller Role = "caller" // creates runs, publishes batches, reads results, removes runs
	Worker Role = "worker" // reads runs, takes batches, writes results, answers and its own state
)

// Subjects that a user of NATS may publish and subscribe to. Of Deny nothing is allowed, whatever Publish says.
type Subjects struct {
	Publish, Deny, Subscribe []string
	Respond                  bool // allow_responses: to questions that arrive
}

// Permissions are what a role needs at the servers, and nothing more.
//
// A worker's key allows what workers do for each other, too: it acknowledges any batch, answers any position that has no answer yet,
// writes any worker's state, the keeper's ledger and, first, any key of the answers. It reads all runs. It is refused to replace a result,
// an answer or a definition, to make, change or remove streams, queues, runs or files, and to publish batches.
//
// That is for the names in requests. A request also names where its reply goes, and servers send it there whatever the user may
// publish: in the account of the streams a malicious worker could have a batch delivered to a subject that is refused to it. Against
// that workers need an account of their own, to which these subjects are exported (examples/cluster).
func Permissions(role Role) Subjects {
	reading := []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.MSG.NEXT.*.*", "$JS.ACK.>",
		"$JS.API.CONSUMER.CREATE.*.*.$KV.>"}
	if role == Worker {
		return Subjects{
			Publish: append(reading, "racflow.*.results.*.*", "racflow.*.pieces.*.*", "racflow.*.ask.>", "racflow.*.tell.>",
				"$KV.*.answer.>", "$KV.*.worker.>", "$KV.*.keeper", "$KV.*.ledger", "$KV.*.lease.>"),
			Deny:      []string{"$JS.API.CONSUMER.CREATE.*.workers.>"},
			Subscribe: []string{"_INBOX.>", "racflow.*.ask.>", "racflow.*.tell.>"},
			Respond:   true,
		}
	}
	return Subjects{
		Publish: append(reading, "$JS.API.CONSUMER.CREATE.*.*.racflow.>", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.DELETE.*", "$JS.API.STREAM.PURGE.*", "$JS.API.STREAM.NAMES",
			"racflow.>", "$KV.>", "$O."+filesBucket+".>"),
		Subscribe: []string{"_INBOX.>", "racflow.*.ask.>", "racflow.*.tell.>"},
		Respond:   true,
	}
}
