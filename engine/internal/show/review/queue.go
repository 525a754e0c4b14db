package review

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// Queue holds the cases and the decisions about them. Several goroutines may call its methods at
// once.
type Queue struct {
	path  string
	run   string // the run of the items; empty: cases are rows
	form  sdk.LabelForm
	cases []Case
	known map[string]int // indices of cases by ID

	mu     sync.Mutex
	labels []string // sorted
	past   map[string][]change
	now    func() time.Time
}

// Review is a queue with its origin.
type Review struct {
	*Queue
	Title    string
	File     string // the pipeline's file; absolute
	Place    Place
	Manifest journal.Manifest // of the run; zero: a review of findings
	Gone     []string         // sentences: which parts of the run are missing

	details map[string][]byte // JSON by case, compressed
}

// Options says what to review, and where decisions are written.
type Options struct {
	Knowledge string // name of the knowledge that learns from the decisions; empty: see Find
	Path      string // the file of decisions; empty: the file that the pipeline's file names
	Votes     int    // for findings: how many rows of a knowledge to ask voters about
	Next      int    // for a run: how many texts to pick that teach most; 0: review doubtful items
}

// OpenRun opens a review of a run, by its ID or as workspace.Newest. It reads everything that it needs
// from the run before it returns: nothing stays open or locked.
func OpenRun(ctx context.Context, o workspace.Options, id string, r Options) (*Review, error) {
	run, err := explain.Open(ctx, o, id)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	m := run.Manifest()
	if m.Answers != journal.LabelAnswers {
		return nil, fmt.Errorf("run %s answers with %s, and only labels can be reviewed", run.ID(), m.Answers)
	}
	p := run.Definition()
	if p == nil {
		return nil, fmt.Errorf("run %s cannot be reviewed, since the decisions are for its file: %s", run.ID(), strings.Join(run.Gone(), "; "))
	}
	is := &Review{Title: run.ID(), File: m.File, Manifest: m, Gone: run.Gone(), details: map[string][]byte{}}
	if is.Place, err = Find(m.File, p.Knowledge(), r.Knowledge, r.Path); err != nil {
		return nil, err
	}
	decide, choice := doubtful, (*choice)(nil)
	if r.Next > 0 {
		if choice, err = choose(ctx, run, is.Place, r.Next); err != nil {
			return nil, err
		}
		decide = choice.has
	}
	cases, err := ofRun(ctx, run, decide, func(c Case, item *explain.Item) error {
		text, err := packed(item)
		is.details[c.ID] = text
		return err
	})
	if err != nil {
		return nil, err
	}
	choice.order(cases)
	is.Queue = NewQueue(is.Place.Path, run.ID(), cases, run.Labels(), m.LabelForm)
	return is, nil
}

// OpenFindings opens a review of the findings of racflow doctor in the rows of a file's knowledge.
func OpenFindings(ctx context.Context, w *workspace.Workspace, file string, r Options) (*Review, error) {
	loaded, err := w.Load(file)
	if err != nil {
		return nil, err
	}
	blocks := loaded.Knowledge
	if len(loaded.Pipelines) > 0 {
		p, err := w.Choose(loaded)
		if err != nil {
			return nil, err
		}
		blocks = p.Knowledge()
	}
	is := &Review{Title: filepath.Base(file)}
	if is.File, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	if is.Place, err = Find(is.File, blocks, r.Knowledge, r.Path); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(blocks, func(k *pipeline.Knowledge) bool { return k.Name == is.Place.Knowledge })
	found, err := w.Diagnose(ctx, file, r.Votes)
	if err != nil {
		return nil, err
	}
	is.Gone = found.Skipped
	set := found.Knowledge[at]
	is.Queue = NewQueue(is.Place.Path, "", OfFindings(set), set.Labels(), blocks[at].LabelForm())
	return is, nil
}

// Details returns the explain.Item of a case as JSON; nil: the case is a row.
func (r *Review) Details(_ context.Context, c Case) (any, error) {
	text, ok := r.details[c.ID]
	if !ok {
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(z)
	return json.RawMessage(whole), err
}

// packed returns compressed JSON, because a run may have thousands of items with hundreds of texts each.
func packed(what any) ([]byte, error) {
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	err := json.NewEncoder(z).Encode(what)
	err = errors.Join(err, z.Close())
	return text.Bytes(), err
}

// change is a decision of a page, for Undo.
type change struct {
	id     string
	before *reviewed.Row // nil: there was no decision
	after  string        // the version after the change
}

// NewQueue makes a queue of cases, and gives them their IDs. Decisions go to the file at path, which
// need not exist; run is the run of the items; labels are the labels of the knowledge, and form is
// their form.
func NewQueue(path, run string, cases []Case, labels []string, form sdk.LabelForm) *Queue {
	q := &Queue{path: path, run: run, form: form, cases: slices.Clone(cases), known: map[string]int{}, past: map[string][]change{}, now: time.Now}
	sort(q.cases)
	for i := range q.cases {
		c := &q.cases[i]
		c.ID = idOf(c.Text, c.Row)
		q.known[c.ID] = i
	}
	for _, label := range labels {
		q.labels = append(q.labels, form.Path(label)...)
	}
	slices.Sort(q.labels)
	q.labels = slices.Compact(q.labels)
	rows, _ := reviewed.Read(path, form) // Decisions reports lines that cannot be read
	q.learn(rows)
	return q
}

// Cases returns all cases, the most doubtful first.
func (q *Queue) Cases() []Case { return q.cases }

// Case finds a case by its id.
func (q *Queue) Case(id string) (Case, bool) {
	i, ok := q.known[id]
	if !ok {
		return Case{}, false
	}
	return q.cases[i], true
}

// Path returns the path of the file of decisions.
func (q *Queue) Path() string { return q.path }

// Form says whether a decision is a set of labels, and whether labels have levels.
func (q *Queue) Form() sdk.LabelForm { return q.form }

// Labels returns the labels of the knowledge and of the decisions, sorted. Where labels have levels,
// the nodes above them can be chosen too.
func (q *Queue) Labels() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.labels)
}

func (q *Queue) learn(rows []reviewed.Row) {
	for _, r := range rows {
		for _, label := range q.form.Split(r.Label) {
			for _, node := range q.form.Path(label) {
				if at, known := slices.BinarySearch(q.labels, node); !known {
					q.labels = slices.Insert(q.labels, at, node)
				}
			}
		}
	}
}

// Request is a person's decision about a case.
type Request struct {
	Case     string `json:"case"`     // its ID
	Label    string `json:"label"`    // or the set of labels, as sdk.JoinLabels writes it
	New      bool   `json:"new"`      // allow labels that the queue does not have
	Drop     bool   `json:"drop"`     // drop the row instead of labelling it
	Withdraw bool   `json:"withdraw"` // withdraw the present decision
	Reviewer string `json:"reviewer"` // who decides
	Page     string `json:"page"`     // identifies the page: Undo takes back its last decision
	Version  string `json:"version"`  // of the decision that the page showed; empty: none
}

// The errors of Queue.Decide and Queue.Undo.
var (
	ErrCase     = errors.New("there is no such case: reload the page")
	ErrReviewer = errors.New("say who decides: a name of at most 100 characters")
	ErrLabel    = errors.New("a label is a line of text, of at most 200 characters")
	ErrNew      = errors.New("the knowledge does not have this label: confirm that it is a new one")
	ErrDrop     = errors.New("only rows of a knowledge can be dropped")
	ErrUndo     = errors.New("there is nothing to undo")
)

// ConflictError means that another person has changed the decision in the meantime.
type ConflictError struct {
	Now *Decision // nil: the decision was withdrawn
}

func (e *ConflictError) Error() string {
	if e.Now == nil {
		return "somebody has withdrawn the decision meanwhile"
	}
	return fmt.Sprintf("%s has decided meanwhile: %s", e.Now.who(), e.Now.what())
}

// Decide keeps a decision: when Decide returns without an error, it is on the disk. The result is
// nil if the request withdraws the decision.
func (q *Queue) Decide(r Request) (*Decision, error) {
	c, ok := q.Case(r.Case)
	if !ok {
		return nil, ErrCase
	}
	r.Reviewer = strings.TrimSpace(r.Reviewer)
	if !isLine(r.Reviewer, 100) {
		return nil, ErrReviewer
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var err error
	switch {
	case r.Withdraw:
	case r.Drop && c.Row == "":
		return nil, ErrDrop
	case r.Drop:
		r.Label = ""
	default:
		if r.Label, err = q.label(r.Label, r.New); err != nil {
			return nil, err
		}
	}
	before, err := q.at(c, r.Version)
	if err != nil {
		return nil, err
	}
	if r.Withdraw {
		if before == nil {
			return nil, nil
		}
		return nil, q.put(r.Page, c, before, nil)
	}
	row := &reviewed.Row{
		Text: c.Text, Label: r.Label, Reviewer: r.Reviewer, ReviewedAt: q.now().UTC().Truncate(time.Second),
		Was: c.Answer, Replaces: c.Row,
	}
	if len(c.Items) > 0 {
		row.Run, row.Item = q.run, c.Items[0]
	}
	if before != nil { // the text in the file may have other spaces
		row.Text = before.Text
	}
	row.ID = reviewed.ID(row.Text, row.Replaces)
	if err := q.put(r.Page, c, before, row); err != nil {
		return nil, err
	}
	q.learn([]reviewed.Row{*row})
	return decisionOf(row), nil
}

// label returns the label or set of a request. isNew allows labels that the queue does not have.
func (q *Queue) label(given string, isNew bool) (string, error) {
	if q.has(given) { // a label of the knowledge keeps its spaces
		return given, nil
	}
	given = q.form.Canonical(given)
	labels := q.form.Split(given)
	if labels == nil {
		return "", ErrLabel
	}
	for _, label := range labels {
		switch {
		case q.has(label):
		case !isLine(label, 200):
			return "", ErrLabel
		case !isNew:
			return "", ErrNew
		}
	}
	return given, nil
}

func (q *Queue) has(label string) bool {
	_, known := slices.BinarySearch(q.labels, label)
	return known
}

// Undo takes back the last change of a page, and returns the ID of its case. If others have decided
// about the case since, their decision stays, the error is a *ConflictError, and the next Undo
// takes back the page's previous change.
func (q *Queue) Undo(page string) (id string, now *Decision, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	past := q.past[page]
	if len(past) == 0 {
		return "", nil, ErrUndo
	}
	last := past[len(past)-1]
	c := q.cases[q.known[last.id]]
	is, err := q.at(c, last.after)
	if err == nil {
		err = q.write(c, is, last.before)
	}
	if conflict := new(ConflictError); errors.As(err, &conflict) {
		q.past[page] = past[:len(past)-1]
		return last.id, conflict.Now, err
	}
	if err != nil {
		return last.id, decisionOf(is), err
	}
	q.past[page] = past[:len(past)-1]
	return last.id, decisionOf(last.before), nil
}

// put changes the decision about a case, and records how to undo the change.
func (q *Queue) put(page string, c Case, before, after *reviewed.Row) error {
	if err := q.write(c, before, after); err != nil {
		return err
	}
	q.past[page] = append(q.past[page], change{c.ID, before, version(after)})
	return nil
}

// at reads the decision about a case. If its version differs from v, the error is a *ConflictError.
func (q *Queue) at(c Case, v string) (*reviewed.Row, error) {
	is, err := q.find(c)
	if err == nil && version(is) != v {
		err = &ConflictError{decisionOf(is)}
	}
	return is, err
}

// write replaces one decision by another, unless another process has replaced it already.
func (q *Queue) write(c Case, before, after *reviewed.Row) error {
	same := func() error {
		_, err := q.at(c, version(before))
		return err
	}
	switch {
	case after != nil:
		return reviewed.Write(q.path, same, []reviewed.Row{*after})
	case before != nil:
		return reviewed.Remove(q.path, same, before.ID)
	}
	return nil
}

// isLine reports whether a text is one printable line with at most the given number of characters.
func isLine(text string, most int) bool {
	return text != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= most &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) })
}
