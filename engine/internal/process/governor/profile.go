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

// This file keeps what is known of language models behind services: which fields of a
// request they take, whether they think first, how many bytes a token has. Stages find it
// out (sdk.Host.KeepProfile), and read it before they ask (sdk.Host.Profile).
//
// A Store is a folder with a readable JSON file for each endpoint and model, which people
// may edit: the next stage that opens goes by what they wrote. A run keeps what it has used
// in a folder of its own, and a resumed run goes by that, whatever has been found out since.
//
// The package does not know what a profile says: that is between a stage and itself, and a
// third party's stage may keep what it likes. Secrets are kept out by package host.

// KnownProfile is what is known of one model.
type KnownProfile struct {
	Endpoint string          `json:"endpoint"` // address of the service
	Model    string          `json:"model"`    // as the service names it
	Profile  json.RawMessage `json:"profile"`  // an object
	File     string          `json:"-"`        // where it is kept
}

// Profiles is a folder of profiles. Its methods may be called by several goroutines at once;
// several processes may have one of the same folder.
type Profiles struct {
	dir string

	mu   sync.Mutex
	run  string                  // the folder of a run; empty: none yet
	used map[string]KnownProfile // by file name
}

// NewProfiles returns the store in a folder, which need not exist.
func NewProfiles(dir string) *Profiles { return &Profiles{dir: dir, used: map[string]KnownProfile{}} }

// Get returns the profile of a model; nil: nothing is known. The run's own comes first.
func (s *Profiles) Get(endpoint, model string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fileName(endpoint, model)
	if k, ok := s.used[name]; ok {
		return k.Profile, nil
	}
	for _, dir := range []string{s.run, s.dir} {
		if dir == "" {
			continue
		}
		k, err := read(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return k.Profile, s.use(name, k)
	}
	return nil, nil
}

// Put keeps the profile of a model, in the place of the one that it had.
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

// use notes that the run goes by a profile. The caller holds mu.
func (s *Profiles) use(name string, k KnownProfile) error {
	s.used[name] = k
	if s.run == "" {
		return nil
	}
	return write(s.run, name, k)
}

// KeepIn makes a folder that of the run: what it holds goes before all else, and what was
// used, or will be, is kept there.
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

// File is where the profile of a model is kept that Get returns. The error is fs.ErrNotExist where nothing
// is known.
func (s *Profiles) File(endpoint, model string) (path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = fs.ErrNotExist
	for _, dir := range []string{s.run, s.dir} {
		if dir == "" {
			continue
		}
		path = filepath.Join(dir, fileName(endpoint, model))
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", err
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
		err = disk.WriteFile(filepath.Join(dir, name), text.Bytes(), false)
	}
	if err != nil {
		return fmt.Errorf("keep the profile of %s: %w", k.Model, err)
	}
	return nil
}

// fileName is one that people recognise, and that no other endpoint and model have.
func fileName(endpoint, model string) string {
	sum := sha256.Sum256([]byte(endpoint + "\x00" + model))
	host := endpoint
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		host = u.Host
	}
	return fmt.Sprintf("%s-%s-%s.json", plain(host), plain(model), hex.EncodeToString(sum[:4]))
}

// plain leaves letters, digits, dots and hyphens of a name, and at most 60 characters.
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
