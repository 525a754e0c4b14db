package bus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Position names a batch of a run: the part (a resumed run begins another; from 1) and the number in it, from 1.
type Position struct{ Part, Seq int }

func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Part, p.Seq) }

const (
	indexStream = "KV_racflow_runs"
	indexPrefix = "$KV.racflow_runs."
	filesBucket = "racflow_files"
	consumer    = "workers"

	headerID     = "Racflow-Id"     // of one publishing, so that whoever repeats it knows its own
	headerWorker = "Racflow-Worker" // name of the process that answered
	headerPieces = "Racflow-Pieces" // "UNIQUE COUNT SIZE": the data lie in pieces
	headerKV     = "KV-Operation"   // of buckets of NATS
)

const idPattern = `[A-Za-z0-9]{1,64}`

var idForm = regexp.MustCompile(`^` + idPattern + `$`)

func checkID(id string) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("run ID %q: it has 1 to 64 letters and digits", id)
	}
	return nil
}

func itemsStream(id string) string   { return "racflow_" + id + "_items" }
func resultsStream(id string) string { return "racflow_" + id + "_results" }
func stateStream(id string) string   { return "KV_racflow_" + id }
func answersStream(id string) string { return "KV_racflow_" + id + "_answers" }

// streamNames are those of all streams that a run has alone.
func streamNames(id string) []string {
	return []string{itemsStream(id), resultsStream(id), stateStream(id), answersStream(id)}
}

func subject(id string, parts ...string) string {
	return "racflow." + id + "." + strings.Join(parts, ".")
}

func itemSubject(id string, p Position) string   { return subject(id, "items", p.String()) }
func resultSubject(id string, p Position) string { return subject(id, "results", p.String()) }
func statePrefix(id string) string               { return "$KV.racflow_" + id + "." }
func answerSubject(id, key string) string        { return "$KV.racflow_" + id + "_answers.answer." + key }

// positionOf reads the end of a subject.
func positionOf(subject string) (Position, error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 2 {
		return Position{}, fmt.Errorf("subject %q has no position", subject)
	}
	part, err := strconv.Atoi(tokens[len(tokens)-2])
	if err != nil {
		return Position{}, fmt.Errorf("subject %q has no position: %w", subject, err)
	}
	seq, err := strconv.Atoi(tokens[len(tokens)-1])
	if err != nil {
		return Position{}, fmt.Errorf("subject %q has no position: %w", subject, err)
	}
	return Position{Part: part, Seq: seq}, nil
}

var keyForm = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

func checkKey(key string) error {
	if !keyForm.MatchString(key) || len(key) > 512 {
		return fmt.Errorf("key %q: it has letters, digits and - / _ = in words with single dots between", key)
	}
	return nil
}
