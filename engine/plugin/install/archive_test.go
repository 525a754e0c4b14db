package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// archives serves files of releases, for two platforms each.
func archives(t *testing.T, versions ...string) (server *httptest.Server, sums map[string]string) {
	t.Helper()
	files, sums := map[string][]byte{}, map[string]string{}
	for _, version := range versions {
		for _, platform := range both {
			content := pack(t, entry{name: "racflow-plugin-mine/racflow-plugin-mine", content: "#!/bin/sh\n# " + platform + version + "\n"}, entry{name: "racflow-plugin-mine/data", content: "x"})
			files["/"+version+"/racflow-plugin-mine_"+platform+".tar.gz"] = content
			sum := sha256.Sum256(content)
			sums[version+" "+platform] = hex.EncodeToString(sum[:])
		}
	}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/elsewhere") {
			http.Redirect(w, r, "/1.0.0/racflow-plugin-mine_linux_amd64.tar.gz", http.StatusFound)
			return
		}
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content) // a broken connection shows in the client
	}))
	t.Cleanup(server.Close)
	return server, sums
}

// TestArchives takes programs from plain archives, by what the file says of them.
func TestArchives(t *testing.T) {
	server, sums := archives(t, "1.0.0", "1.1.0")
	sha256 := func(version string) string {
		return fmt.Sprintf("sha256 = { \"linux/amd64\" = %q, \"linux/arm64\" = %q }", sums[version+" linux_amd64"], strings.ToUpper(sums[version+" linux_arm64"]))
	}
	p := newPlace(t)
	asked, version := 0, "1.0.0"
	p.installer.Describe = func(_ context.Context, from program.Program) (sdk.Plugin, error) {
		if asked++; from.Origin != program.Locked || from.Hash == "" {
			t.Errorf("%+v is started without a hash", from)
		}
		if version == "" {
			return sdk.Plugin{}, errors.New("it did not answer")
		}
		return said(version), nil
	}
	source := server.URL + "/{version}/racflow-plugin-mine_{os}_{arch}.tar.gz"
	p.require(source, "1.0.0", sha256("1.0.0"))
	p.init("")
	got := p.locked()
	if got.Version != "1.0.0" || got.Signer != "" || got.Protocol != 2 || len(got.Programs) != 2 || got.Programs["linux/amd64"] == got.Programs["linux/arm64"] {
		t.Errorf("locked %+v", got)
	}
	installed := must(p.installer.Store.Program("mine", got.Programs["linux/amd64"]))
	if said, _, err := p.installer.Store.Description(installed.Hash); err != nil || said.Version != "1.0.0" || asked != 1 {
		t.Errorf("described as %+v, %v, after %d starts", said, err, asked)
	}
	if p.init("").Written || asked != 1 {
		t.Errorf("again: %d starts", asked)
	}
	p.machine("linux/arm64")
	if p.init("").Written || asked != 2 {
		t.Errorf("on another machine: %d starts", asked)
	}
	must(p.installer.Store.Program("mine", got.Programs["linux/arm64"]))
	p.machine("linux/amd64")
	p.init("")

	p.installer.Locked = true
	p.require(source, "1.1.0", sha256("1.1.0"))
	p.init(`version 1.0.0, chosen by "1.0.0", and the file now has "1.1.0"`)
	p.require(source, "1.0.0", sha256("1.1.0"))
	p.init("the file now has other archives (sha256)")
	p.installer.Locked = false
	version = "1.1.0"
	p.require(source, "1.1.0", sha256("1.1.0"))
	if out := p.init(""); out.Changes[0].What() != "1.0.0 -> 1.1.0" {
		t.Errorf("%+v", out.Changes)
	}

	for _, c := range []struct{ source, version, sha256, says, want string }{
		{source, "1.0.0", sha256("1.1.0"), "1.0.0", "it was changed, or was cut off after"},
		{source, "1.0.0", `sha256 = { "linux/amd64" = "00" }`, "1.0.0", "is no sha256: it has 64 digits"},
		{source, "1.0.0", `sha256 = { "linux/arm64" = "00" }`, "1.0.0", `no archive for linux/amd64 is named: add its hash, sha256 = { "linux/amd64" = "..." }`},
		{source, "1.0.0", "", "1.0.0", "no archive for linux/amd64 is named"},
		{source, "~> 1.0", sha256("1.0.0"), "1.0.0", "holds {version}, so version has to be one"},
		{source, "3.0.0", sha256("1.0.0"), "3.0.0", "the server answers 404"},
		{source, "1.0.0", sha256("1.0.0"), "1.0.1", "says of itself that it is version 1.0.1"},
		{source, "1.0.0", sha256("1.0.0"), "", "it did not answer"},
		{server.URL + "/1.0.0/racflow-plugin-mine_{os}_{arch}.tar.gz", "~> 2.0", sha256("1.0.0"), "1.0.0", `the archive holds version 1.0.0 of "mine", which does not meet "~> 2.0"`},
		{server.URL + "/1.0.0/racflow-plugin-mine_{os}_{arch}.zip", "", sha256("1.0.0"), "1.0.0", "it takes a .tar.gz, or the program itself"},
	} {
		p.machine("linux/amd64")
		version = c.says
		p.require(c.source, c.version, c.sha256)
		p.init(c.want)
		if hasFolder(must(readDir(p.installer.Store.Dir()))) {
			t.Errorf("after %q something is left in the store", c.want)
		}
	}
}

func readDir(dir string) ([]os.DirEntry, error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return all, err
}

// TestArchiveFiles takes an archive, and a program, that lie beside the file.
func TestArchiveFiles(t *testing.T) {
	for name, content := range map[string][]byte{
		"mine.tar.gz": pack(t, entry{name: "racflow-plugin-mine", content: "#!/bin/sh\n"}),
		"program":     []byte("#!/bin/sh\n"),
	} {
		p := newPlace(t)
		p.installer.Describe = func(context.Context, program.Program) (sdk.Plugin, error) { return said("1.0.0"), nil }
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		p.require("file:"+name, "", fmt.Sprintf("sha256 = { \"any/any\" = %q }", hex.EncodeToString(sum[:])))
		p.init("")
		if got := p.locked(); got.Version != "1.0.0" || got.Programs["any/any"] == "" {
			t.Errorf("%s: locked %+v", name, got)
		}
	}
}

// TestUnnamed installs a plugin by its source alone.
func TestUnnamed(t *testing.T) {
	server, sums := archives(t, "1.0.0")
	s, p, ctx := newServer(t), newPlace(t), context.Background()
	release(t, s.source(), "1.2.0", nil, both...)
	got, installed, err := p.installer.Install(ctx, Wanted{Source: s.source()}, nil)
	if err != nil || !installed || got.Name != "mine" || got.Version != "1.2.0" {
		t.Errorf("got %+v, %v", got, err)
	}
	p.installer.Describe = func(context.Context, program.Program) (sdk.Plugin, error) { return said("1.0.0"), nil }
	sha256 := map[string]string{"linux/amd64": sums["1.0.0 linux_amd64"]}
	got, installed, err = p.installer.Install(ctx, Wanted{Source: server.URL + "/1.0.0/racflow-plugin-mine_linux_amd64.tar.gz", SHA256: sha256}, nil)
	if err != nil || !installed || got.Name != "mine" || got.Version != "1.0.0" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, _, err = p.installer.Install(ctx, Wanted{Source: server.URL + "/elsewhere", SHA256: sha256}, nil); err == nil || !strings.Contains(err.Error(), "does not say which plugin it holds") {
		t.Errorf("got %v", err)
	}
}
