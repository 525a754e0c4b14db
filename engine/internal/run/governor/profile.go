package governor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/internal/process/disk"
)

// This file stores profiles of language models behind services: which fields of a request they
// accept, whether they think first, how many bytes a token has. Stages write a profile
// (sdk.Host.KeepProfile), and read it before they ask (sdk.Host.Profile).
//
// Profiles is a folder with a readable JSON file for each endpoint and model. People may edit the
// files; a stage that opens later uses the edited version. A run copies the profiles that it uses
// into a folder of its own, and a resumed run uses the copies even if the originals have changed.
//
// The package does not interpret profiles: each stage, including third-party stages, decides what
// its profiles contain. Package host rejects profiles with secrets.

// KnownProfile is the profile of one model.
type KnownProfile struct {
	Endpoint string          `json:"endpoint"` // address of the service
	Model    string          `json:"model"`    // the service's name for the model
	Profile  json.RawMessage `json:"profile"`  // an object
	File     string          `json:"-"`        // path of its file
}

// Profiles is a folder of profiles. Its methods are safe for concurrent use, and several processes
// may use the same folder.
type Profiles struct {
	dir string

	mu   sync.Mutex
	run  string                  // the folder of a run; empty: none yet
	used map[string]KnownProfile // by file name
}

// NewProfiles returns the profiles in a folder, which need not exist.
func NewProfiles(dir string) *Profiles { return &Profiles{dir: dir, used: map[string]KnownProfile{}} }

// Get returns the profile of a model; nil: there is none. The run's copy takes precedence.
func (s *Profiles) Get(endpoint, model string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fileName(endpoint, model)
	if k, ok := s.used[name]; ok {
		return k.Profile, nil
	}
	k, err := s.find(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return k.Profile, s.use(name, k)
}

// find reads a profile: the run's copy or, if there is no copy, the original. The error is fs.ErrNotExist if neither
// exists.
func (s *Profiles) find(name string) (k KnownProfile, err error) {
	err = fs.ErrNotExist
	for _, dir := range []string{s.run, s.dir} {
		if dir != "" && errors.Is(err, fs.ErrNotExist) {
			k, err = read(filepath.Join(dir, name))
		}
	}
	return k, err
}

// Put stores the profile of a model, and replaces an existing profile.
func (s *Profiles) Put(endpoint, model string, profile json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fileName(endpoint, model)
	k := KnownProfile{Endpoint: endpoint, Model: model, Profile: profile}
	if err := write(s.dir, name, k); err != nil {
		return err
	}
	return s.use(name, k)
}

// use records that the run uses a profile. The caller holds mu.
func (s *Profiles) use(name string, k KnownProfile) error {
	s.used[name] = k
	if s.run == "" {
		return nil
	}
	return write(s.run, name, k)
}

// KeepIn sets the folder of the run. Profiles in it take precedence, and every profile that the run
// has used or will use is copied into it.
func (s *Profiles) KeepIn(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = dir
	for name, k := range s.used {
		earlier, err := read(filepath.Join(dir, name))
		switch {
		case err == nil:
			s.used[name] = earlier
		case !errors.Is(err, fs.ErrNotExist):
			return err
		default:
			if err := write(dir, name, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// List returns all profiles of the folder, by file name.
func (s *Profiles) List() ([]KnownProfile, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []KnownProfile
	for _, file := range files {
		k, err := read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func read(file string) (KnownProfile, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return KnownProfile{}, err
	}
	k := KnownProfile{File: file}
	var object map[string]json.RawMessage
	if err = json.Unmarshal(raw, &k); err == nil {
		err = json.Unmarshal(k.Profile, &object)
	}
	if err == nil && object == nil {
		err = errors.New("it holds no profile")
	}
	if err != nil {
		return k, fmt.Errorf("the profile in %s is damaged; mend it, or remove it to have it found out again: %w", file, err)
	}
	return k, nil
}

func write(dir, name string, k KnownProfile) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(k)
	if err == nil {
		err = disk.MakeFolder(dir)
	}
	if err == nil {
		err = disk.WriteFile(filepath.Join(dir, name), text.Bytes(), true) // an incomplete file would stop every later run
	}
	if err != nil {
		return fmt.Errorf("keep the profile of %s: %w", k.Model, err)
	}
	return nil
}

// fileName returns a readable file name that is unique to the endpoint and model.
func fileName(endpoint, model string) string {
	sum := sha256.Sum256([]byte(endpoint + "\x00" + model))
	host := endpoint
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		host = u.Host
	}
	return fmt.Sprintf("%s-%s-%s.json", plain(host), plain(model), hex.EncodeToString(sum[:4]))
}

// plain keeps letters, digits, dots and hyphens, replaces other characters by "_", and cuts after 60
// characters.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 60)]
}
