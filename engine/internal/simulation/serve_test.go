package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/serve"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/result"
)

// state is a state of a pipeline's file and rows. A voter has the number of the file in its name. A
// label that is near every text has the number of the rows. So an answer shows which version gave it.
type state struct{ file, rows int }

// seen returns the newest numbers of both states.
func (a state) seen(b state) state { return state{max(a.file, b.file), max(a.rows, b.rows)} }

// site serves a pipeline while its files change, its clients come and go, and its services fail.
type site struct {
	*world
	model   *service
	m       *machine
	set     *live.Set // nil: none is open
	client  *http.Client
	watch   bool
	asks    bool // its voters ask a service
	logged  logged
	flaky   atomic.Bool    // services and stages fail
	refused atomic.Bool    // a stage has not started
	work    sync.WaitGroup // of clients, and of writers of the files

	changing sync.Mutex        // guards the files; nobody waits for a turn while holding it
	newest   state             // of the files
	oldest   state             // the oldest state that a new request may get
	broken   bool              // the files are no valid pipeline
	texts    map[string]string // contents of the files
	writes   int
}

// logged collects what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// write changes the file or the rows, or breaks one of them.
func (s *site) write(file, rows, broken bool) {
	s.changing.Lock()
	defer s.changing.Unlock()
	put := func(name, text string) {
		s.writes++
		s.texts[name] = text
		path := filepath.Join(s.m.dir, name)
		err := errors.Join(s.m.drive.put(path, []byte(text)), os.Chtimes(path, time.Time{}, time.Now().Add(time.Duration(s.writes))))
		if err != nil {
			s.Error(err)
		}
		s.note("%s is written: %v, broken: %v", name, s.newest, broken)
	}
	file, rows = file || s.broken, rows || s.broken
	if file {
		s.newest.file++
		text := strings.Replace(kind{}.text(), `"words" {`, fmt.Sprintf(`"words%d" {`, s.newest.file), 1)
		if !s.asks {
			before, _, _ := strings.Cut(text, `  prompt "ask"`)
			text = before + `  elect "e" { use = "majority" }` + "\n}\n"
		}
		if broken {
			text = strings.Replace(text, "top_k", "top", 1)
		}
		put("p.hcl", text)
	}
	if rows {
		s.newest.rows++
		text := fmt.Sprintf("text\tlabel\nan apple\tfruit\na car\tvehicle\nthe edition\tv%d\n", s.newest.rows)
		if broken {
			text = "\x00"
		}
		put("rows.tsv", text)
	}
	s.broken = broken
}

func (s *site) now() (oldest, newest state, broken bool) {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.oldest, s.newest, s.broken
}

// reached records a state that has answered: no later request may get an older one.
func (s *site) reached(is state) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.oldest = s.oldest.seen(is)
}

// open lets a machine serve.
func (s *site) open() error {
	m := s.m
	s.refused.Store(false)
	m.refuses = func() bool {
		refuses := s.flaky.Load() && s.one(20)
		if refuses {
			s.refused.Store(true)
		}
		return refuses
	}
	front := pipes{make(chan net.Conn), m.ctx.Done()}
	s.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return front.dial(ctx) },
	}}
	log := slog.New(slog.NewTextHandler(&s.logged, nil))
	o := m.options()
	o.Journal, o.Log = false, log
	var err error
	if s.set, err = live.Open(m.ctx, []string{filepath.Join(m.dir, "p.hcl")}, live.Options{Engine: o, Watch: s.watch, Log: log}); err != nil {
		return err
	}
	_, newest, _ := s.now()
	if err = s.set.Start(m.ctx); err != nil {
		return err
	}
	s.reached(newest)
	server, err := serve.New(serve.Of(s.set), serve.Options{Timeout: time.Hour, Log: log})
	if err != nil {
		return err
	}
	go server.Serve(m.ctx, front)
	return nil
}

// shake makes the service and stages fail, or work again.
func (s *site) shake(flaky bool) {
	s.flaky.Store(flaky)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.flaky, s.model.down, s.model.takes = 0, 0, nil
	if flaky {
		s.model.flaky, s.model.down = 10, 60*s.random.IntN(2)
		s.model.takes = func(string) time.Duration {
			return time.Duration(max(0, s.draw(int(40*time.Second))-int(30*time.Second)))
		}
	}
}

// post sends a request. Without an error, the answer is complete.
func (s *site) post(ctx context.Context, path, kind string, body io.Reader) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://site/v1/pipelines/p/"+path, body)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", kind)
	response, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if bytes.Contains(answer, []byte(secret)) {
		s.Errorf("an answer has a secret: %s", answer)
	}
	return response.StatusCode, answer, err
}

// ask asks about texts in one request, whose sender sends one text after the other. It reports
// whether all voters have voted on each text.
func (s *site) ask(ctx context.Context, who string, texts ...string) (complete bool) {
	m := s.m
	oldest := make([]state, len(texts))
	body, sent := io.Pipe()
	go func() {
		for i, text := range texts {
			if i > 0 && m.turn(who+" sends more") != nil {
				break
			}
			oldest[i], _, _ = s.now()
			if json.NewEncoder(sent).Encode(serve.Item{ID: fmt.Sprint(who, i), Text: text}) != nil {
				break
			}
		}
		sent.Close()
	}()
	defer body.Close()
	kind := "application/json"
	if len(texts) > 1 {
		kind = "application/x-ndjson"
	}
	status, answer, err := s.post(ctx, "answer", kind, body)
	if ctx.Err() != nil || s.m.died() {
		return false
	}
	if err != nil || status != http.StatusOK && !s.excused(string(answer)) {
		s.Errorf("%q: %d %s, %v", texts, status, answer, err)
	}
	if err != nil || status != http.StatusOK {
		return false
	}
	complete = true
	lines := json.NewDecoder(bytes.NewReader(answer))
	for i, text := range texts {
		var r result.Result
		if err := lines.Decode(&r); err != nil || r.ID != fmt.Sprint(who, i) || r.Text != text {
			s.Errorf("%s: %+v, %v", text, r, err)
			return false
		}
		complete = s.check(r, oldest[i]) && complete
	}
	if lines.More() {
		s.Errorf("there are more answers than questions: %s", answer)
	}
	return complete
}

// excused reports whether a failure comes from a service that has failed.
func (s *site) excused(message string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost["service"] > 0 && (strings.Contains(message, "sample.a") || strings.Contains(message, "sample.b"))
}

// check compares an answer with the possible answers of the versions that served meanwhile.
func (s *site) check(r result.Result, oldest state) (complete bool) {
	if r.Error != nil {
		if !s.excused(r.Error.Error()) {
			s.Errorf("%s: %v", r.Text, r.Error)
		}
		return false
	}
	var is state
	wrong := false
	one := func(a *int, number string) {
		n, err := strconv.Atoi(number)
		wrong = wrong || err != nil || *a != 0 && *a != n
		*a = n
	}
	voters, rows := map[string]bool{}, 0
	for _, v := range r.Votes {
		voters[v.Voter] = true
		file, words := strings.CutPrefix(v.Voter, "words")
		if words {
			one(&is.file, file)
		} else if v.Voter != "knn" {
			wrong = wrong || v.Answer != says(v.Voter, r.Text, labels)
		}
		if number, ok := strings.CutPrefix(v.Answer, "v"); ok && number != "ehicle" {
			one(&is.rows, number)
			rows++
		}
	}
	complete = len(voters) == 4 || !s.asks && len(voters) == 2
	_, newest, _ := s.now()
	switch {
	case wrong, rows != 2, is.file == 0:
		s.Errorf("%s: the answer is of no version: %+v", r.Text, r)
	case is.rows < oldest.rows, is.file < oldest.file, is.rows > newest.rows, is.file > newest.file:
		s.Errorf("%s: the answer is of %v, and from %v to %v served", r.Text, is, oldest, newest)
	case !complete && !s.excused(fmt.Sprint("sample.a", r.Missing)):
		s.Errorf("%s: a voter is missing: %+v", r.Text, r)
	}
	s.reached(is)
	return complete
}

// visitor sends requests, again and again, and may not wait for the answer.
func (s *site) visitor(name string) {
	m := s.m
	for i := 0; i < 2 && m.turn(name) == nil; i++ {
		ctx, cancel := context.WithCancel(s.Context())
		if s.one(6) {
			s.work.Go(func() {
				_ = m.turn(name + " leaves")
				cancel()
			})
		}
		texts := make([]string, 1)
		if s.one(3) {
			texts = make([]string, 2+s.draw(3))
		}
		for i := range texts {
			texts[i] = s.text()
		}
		s.ask(ctx, fmt.Sprint(name, " for the ", i, ". time: "), texts...)
		cancel()
	}
}

func (s *site) text() string {
	return fmt.Sprintf("the edition of an apple or a car, number %d", s.draw(30))
}

// rebuild makes the server read the files again.
func (s *site) rebuild() {
	_, before, broken := s.now()
	status, answer, err := s.post(s.Context(), "rebuild?wait=true", "application/json", nil)
	switch {
	case s.m.died():
	case err != nil, status != http.StatusOK && status != http.StatusConflict, broken && status == http.StatusOK,
		!broken && status != http.StatusOK && !bytes.Contains(answer, []byte("does not start")):
		s.Errorf("a rebuild, broken: %v: %d %s, %v", broken, status, answer, err)
	case status == http.StatusOK:
		s.reached(before)
	}
}

// editor changes the files.
func (s *site) editor() {
	for i := 0; i < 3 && s.m.turn("editor") == nil; i++ {
		what := s.draw(3)
		s.write(what != 0, what != 1, s.one(4))
		if s.watch && s.one(2) {
			time.Sleep(5 * time.Second)
			continue
		}
		s.rebuild()
	}
}

// settle waits until everything in progress has ended: then the newest version serves, and nothing
// else remains.
func (s *site) settle(stages int64, before []string) {
	if s.watch {
		s.write(true, true, false)
		time.Sleep(time.Minute)
	} else {
		if s.broken {
			s.write(true, true, false)
		}
		time.Sleep(20 * time.Minute) // longer than an unheld edition has to stay
		s.write(true, true, false)
		s.rebuild()
	}
	_, newest, _ := s.now()
	s.reached(newest)
	complete := false
	for range 4 {
		complete = s.ask(s.Context(), "somebody", s.text())
		time.Sleep(time.Minute)
	}
	if s.m.died() {
		return
	}
	if !complete {
		s.Errorf("a service that is back is not asked")
	}
	if n := s.m.stages.Load(); n != stages {
		s.Errorf("%d stages run, and a version has %d", n, stages)
	}
	made := slices.DeleteFunc(s.editions(), func(e string) bool { return slices.Contains(before, e) })
	if len(made) != 1 && (!s.watch || !s.refused.Load()) { // if a version did not start, another removes its edition minutes later
		s.Errorf("editions of the knowledge are there that nobody searches: %v, and before %v", made, before)
	}
}

// editions returns the editions of the knowledge in the state folder.
func (s *site) editions() []string {
	all, _ := filepath.Glob(filepath.Join(s.m.dir, "state/knowledge/k/k-*"))
	return slices.DeleteFunc(all, func(path string) bool { return strings.HasSuffix(path, "-labels") })
}

// A pipeline answers while it changes, and each answer comes from a version that served.
func TestServe(t *testing.T) { histories(t, 250, serves) }

// Failures that once occurred, by seed.
func TestServeFound(t *testing.T) {
	found(t, map[string]uint64{"a version that cannot be replaced is tried without a pause": 101973}, serves)
}

// serves is a history of a served pipeline.
func serves(w *world) {
	s := &site{world: w, model: w.service(), watch: w.one(2), asks: !w.one(3), texts: map[string]string{}}
	s.model.limit = 2
	flaky, dir := w.one(2), w.files("", 0)
	for deaths := 0; ; deaths++ {
		s.m = w.machine(dir)
		if deaths < 2 && w.one(2) {
			s.m.deathAt, s.m.power = 1+w.draw(400), w.one(2)
		}
		for _, name := range slices.Sorted(maps.Keys(s.texts)) { // the writer of the files lives longer than the machine
			_ = s.m.drive.put(filepath.Join(dir, name), []byte(s.texts[name]))
		}
		if deaths == 0 || s.broken {
			s.write(true, true, false)
		}
		s.live(flaky)
		if !s.m.died() {
			break
		}
		s.m.survive()
	}
	if log := s.logged.text.String(); strings.Contains(log, secret) {
		s.Errorf("the log has a secret: %s", log)
	}
}

// live is the life of a machine.
func (s *site) live(flaky bool) {
	before := s.editions()
	err := s.open()
	switch stages := s.m.stages.Load(); {
	case err == nil:
		s.shake(flaky)
		for i := range 2 + s.draw(3) {
			s.work.Go(func() { s.visitor(fmt.Sprint("visitor ", i)) })
		}
		s.work.Go(s.editor)
		s.work.Wait()
		s.shake(false)
		if !s.m.died() {
			s.settle(stages, before)
		}
	case !s.m.died():
		s.Errorf("it does not start: %v", err)
	}
	time.Sleep(time.Minute) // work in progress ends
	if s.set != nil {
		s.set.Close()
	}
	s.m.end()
	time.Sleep(time.Minute)
	if n := s.m.stages.Load(); n != 0 {
		s.Errorf("%d stages run on", n)
	}
}
