package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/racflow/racflow/engine/redact"
)

// Repository holds the releases of a plugin.
type Repository struct {
	name    string // for people
	from    reader
	to      writer // nil: it is only read
	host    string // of a registry
	secrets redact.Secrets
}

// reader is what registries and layouts have in common.
type reader interface {
	content.ReadOnlyGraphStorage
	content.Resolver
	registry.TagLister
}

type writer interface {
	content.Pusher
	content.Tagger
}

// Open makes the repository of a source ready to be read. It asks no registry yet.
func Open(ctx context.Context, s Source) (*Repository, error) {
	mirrored := s.mirrored()
	if mirrored.Layout == "" {
		return openRemote(s)
	}
	r := &Repository{name: mirrored.Layout}
	layout, err := oci.NewFromFS(ctx, os.DirFS(mirrored.Layout))
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.Repository != nil:
		return nil, fmt.Errorf("the mirror has no %s: %s is no OCI layout; copy the repository there, for example by oras cp --recursive --to-oci-layout, or unset %s",
			s.Repository, mirrored.Layout, MirrorVariable)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is no OCI layout: name the folder that racflow plugin publish wrote", mirrored.Layout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", mirrored.Layout, err)
	}
	r.from = layout
	return r, nil
}

// Create makes the repository of a source ready to be published to. A layout is made where there is none.
func Create(ctx context.Context, s Source) (*Repository, error) {
	if s.Layout == "" {
		return openRemote(s)
	}
	layout, err := oci.NewWithContext(ctx, s.Layout)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Layout, err)
	}
	return &Repository{name: s.Layout, from: layout, to: layout}, nil
}

func openRemote(s Source) (*Repository, error) {
	if s.Repository == nil {
		return nil, errors.New("an archive has no releases: it is one program")
	}
	r := &Repository{name: s.Repository.String(), host: s.Repository.Host()}
	known, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the configuration of docker: %w", err)
	}
	get := credentials.Credential(known)
	here := loopback(s.Repository.Registry)
	client := &auth.Client{
		Client: &http.Client{Transport: retry.NewTransport(transport(silence))},
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			c, err := get(ctx, host)
			if c != auth.EmptyCredential {
				r.secrets.Add(c.Password, c.AccessToken, c.RefreshToken, base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password)))
			}
			return c, err
		},
	}
	if here {
		client.BlockedRealmPrefixes = []netip.Prefix{} // its tokens come from this machine, too
	}
	client.SetUserAgent("racflow")
	repo := &remote.Repository{
		Client: client, Reference: *s.Repository, PlainHTTP: here,
		TagListMaxPages: 256, ReferrerListMaxPages: 64, SkipReferrersGC: true,
	}
	r.from, r.to = repo, repo
	return r, nil
}

// silence is how long a server may say nothing before it is given up.
const silence = time.Minute

// transport is the usual one, except that a server which falls silent, also in the middle of a download, is given up.
func transport(silence time.Duration) http.RoundTripper {
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t := usual.Clone()
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &patient{c, silence}, nil
	}
	return t
}

// patient is a connection of which each read has its own deadline.
type patient struct {
	net.Conn
	silence time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.silence)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}
