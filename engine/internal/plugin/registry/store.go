package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// This file stores installed programs of plugins. Each has a private folder, named by its hash, with the program's
// description beside it, so that the program need not be started to get it.
//
// The hash of a program is checked again before each start, since any program of the same user could have changed it.
// This file downloads nothing and starts nothing.

// StoreVariable names the folder of the store in place of the default one.
const StoreVariable = "RACFLOW_PLUGIN_CACHE"

// ErrMissing says that a program is not installed.
var ErrMissing = errors.New("it is not installed on this machine")

// Store is a folder of programs.
type Store struct{ dir string }

// Installed is a program in the store.
type Installed struct {
	Name, Hash string
	Version    string // as in its description
}

// OpenStore opens the store in a folder; "": the folder in StoreVariable or, without it, the user's default. It
// creates nothing yet.
func OpenStore(dir string) (*Store, error) {
	if dir == "" {
		dir = os.Getenv(StoreVariable)
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the folder of installed plugins: %w; name one in %s", err, StoreVariable)
		}
		dir = filepath.Join(cache, "racflow", "plugins")
	}
	dir, err := filepath.Abs(dir)
	return &Store{dir}, err
}

// Dir returns the folder of the store.
func (s *Store) Dir() string { return s.dir }

// folder returns the folder of a program. It fails for a malformed hash.
func (s *Store) folder(hash string) (string, error) {
	for _, prefix := range []string{program.FileHash, program.TreeHash} {
		hex, ok := strings.CutPrefix(hash, prefix)
		if ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == "" {
			return filepath.Join(s.dir, strings.TrimSuffix(prefix, ":")+"-"+hex), nil
		}
	}
	return "", fmt.Errorf("%q is not the hash of a program, which is sha256:HEX or tree:HEX", hash)
}

// Program returns an installed program by its hash. It first checks that the program is safe to start and has that
// hash. The error is ErrMissing if the program is not installed.
func (s *Store) Program(name, hash string) (program.Program, error) {
	p, err := s.locate(hash)
	if err != nil {
		return p, err
	}
	p.Name = name
	if info, err := os.Stat(s.dir); err != nil || info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return p, errors.Join(err, fmt.Errorf("%s may be changed by others on this machine, so nobody knows what would be started; try: chmod go-w %s", s.dir, s.dir))
	}
	_, err = p.Check()
	return p, err
}

// locate finds a program without reading it.
func (s *Store) locate(hash string) (program.Program, error) {
	dir, err := s.folder(hash)
	if err != nil {
		return program.Program{}, err
	}
	found, err := filepath.Glob(filepath.Join(dir, program.Prefix+"*"))
	if err != nil {
		return program.Program{}, err
	}
	if len(found) == 0 {
		return program.Program{}, ErrMissing
	}
	if len(found) > 1 {
		return program.Program{}, fmt.Errorf("%s holds several programs, and one was installed: remove the folder, and install the plugin again", dir)
	}
	p, err := program.At(found[0])
	p.Hash, p.Origin = hash, program.Locked
	return p, err
}

// described reads only the protocol's version from a description: other versions may have another
// format.
type described struct {
	Protocol int `json:"protocol"`
}

// EncodeDescription encodes a plugin's description for storing and publishing.
func EncodeDescription(p sdk.Plugin) ([]byte, error) {
	raw, err := protojson.Marshal(wire.EncodePlugin(p))
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	fields["protocol"] = fmt.Append(nil, wire.ProtocolVersion)
	return json.MarshalIndent(fields, "", "  ")
}

// decodeDescription decodes a description, and the version of the protocol that its program uses.
func decodeDescription(raw []byte) (sdk.Plugin, int, error) {
	var d described
	if err := json.Unmarshal(raw, &d); err != nil || d.Protocol <= 0 {
		return sdk.Plugin{}, 0, errors.New("the plugin's description does not say which version of racflow's protocol it speaks")
	}
	if d.Protocol != wire.ProtocolVersion {
		return sdk.Plugin{}, d.Protocol, nil // its format may differ
	}
	reply := &stagepb.DescribeReply{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, reply); err != nil {
		return sdk.Plugin{}, 0, fmt.Errorf("read the plugin's description: %w", err)
	}
	p, err := wire.DecodePlugin(reply)
	return p, d.Protocol, err
}

// Description returns the description of an installed program, and the version of its protocol. If
// this racflow uses another version, the description is empty.
func (s *Store) Description(hash string) (sdk.Plugin, int, error) {
	dir, err := s.folder(hash)
	if err != nil {
		return sdk.Plugin{}, 0, err
	}
	raw, err := os.ReadFile(dir + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return sdk.Plugin{}, 0, ErrMissing
	}
	if err != nil {
		return sdk.Plugin{}, 0, err
	}
	return decodeDescription(raw)
}

// List lists the installed programs, by name and hash.
func (s *Store) List() ([]Installed, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Installed
	for _, e := range entries {
		kind, hex, ok := strings.Cut(e.Name(), "-")
		hash := kind + ":" + hex
		if !ok || !e.IsDir() {
			continue
		}
		p, err := s.locate(hash)
		if err != nil {
			continue // incomplete, or not a program of the store
		}
		one := Installed{Name: p.Name, Hash: hash}
		if d, _, err := s.Description(hash); err == nil {
			one.Version = d.Version
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Installed) int {
		return strings.Compare(a.Name+"\x00"+a.Hash, b.Name+"\x00"+b.Hash)
	})
	return all, nil
}

// CopyTo copies a program, its description and the list of its releases and signers into the folder of another store,
// which does not have the program.
func (s *Store) CopyTo(to, hash string) error {
	dir, err := s.folder(hash)
	if err != nil {
		return err
	}
	at := filepath.Join(to, filepath.Base(dir))
	if err := disk.MakeFolder(to); err != nil {
		return err
	}
	if err := os.CopyFS(at, os.DirFS(dir)); err != nil {
		return err
	}
	err = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return errors.Join(err, os.Chmod(path, 0o700)) // writable, so that people can remove the copy
		}
		info, err := e.Info()
		if err == nil && e.Type().IsRegular() {
			err = os.Chmod(path, info.Mode()&0o500)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, beside := range []string{".json", vouchers} {
		content, err := os.ReadFile(dir + beside)
		if err == nil {
			err = disk.WriteFile(at+beside, content, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a program. The error is ErrMissing if it is not installed.
func (s *Store) Remove(hash string) error {
	dir, err := s.folder(hash)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
	}
	for _, beside := range []string{".json", vouchers} {
		if err := os.Remove(dir + beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return removeAll(dir)
}

// removeAll removes a folder whose folders are read only.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// vouchers is the suffix of the file that lists the program's releases, each with its signer.
const vouchers = ".signers"

// Vouch records that the program belongs to this release and that its signer was checked.
func (s *Store) Vouch(p plugin.LockedPlugin, hash string) error {
	dir, err := s.folder(hash)
	if err != nil || s.Vouched(p, hash) {
		return err
	}
	known, err := os.ReadFile(dir + vouchers)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return disk.WriteFile(dir+vouchers, append(known, voucher(p)+"\n"...), false)
}

// Vouched reports whether Vouch has recorded this release and this signer for the program.
func (s *Store) Vouched(p plugin.LockedPlugin, hash string) bool {
	dir, err := s.folder(hash)
	if err != nil {
		return false
	}
	known, err := os.ReadFile(dir + vouchers)
	return err == nil && slices.Contains(strings.Split(string(known), "\n"), voucher(p))
}

func voucher(p plugin.LockedPlugin) string { return fmt.Sprintf("%q %q", p.Digest, p.Signer) }

// Describe replaces the description of an installed program.
func (s *Store) Describe(hash string, description []byte) error {
	dir, err := s.folder(hash)
	if err != nil {
		return err
	}
	return s.describe(dir, description)
}

// describe stores a description.
func (s *Store) describe(dir string, description []byte) error {
	if _, _, err := decodeDescription(description); err != nil {
		return err
	}
	return disk.WriteFile(dir+".json", description, false)
}
