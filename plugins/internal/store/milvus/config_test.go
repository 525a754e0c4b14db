package milvus

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestConfigErrors(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.pem")
	must.Do(t, os.WriteFile(junk, []byte("junk"), 0o600))
	for config, argument := range map[string]string{
		`{"address": "user:hunter2@host"}`:             "address",
		`{"address": "ftp://host"}`:                    "address",
		`{"address": ":19530"}`:                        "address",
		`{"address": "host/path"}`:                     "address",
		`{"prefix": "a_b"}`:                            "prefix",
		`{"token": "x", "user": "u", "password": "p"}`: "user",
		`{"user": "u"}`:                                "user",
		`{"index": ""}`:                                "index",
		`{"b": 2}`:                                     "b",
		`{"shards": 0}`:                                "shards",
		`{"batch_rows": 5000}`:                         "batch_rows",
		`{"batch_bytes": 100000000}`:                   "batch_bytes",
		`{"call_timeout": "10m"}`:                      "call_timeout",
		`{"connect_timeout": "0s"}`:                    "connect_timeout",
		`{"retry_time": "-1s"}`:                        "retry_time",
		`{"consistency": "weak"}`:                      "consistency",
		`{"ca": "` + junk + `"}`:                       "tls",
		`{"tls": true, "ca": "` + junk + `"}`:          "ca",
		`{"tls": true, "cert": "` + junk + `"}`:        "cert",
		`{"tls": true, "cert": "` + junk + `", "key": "` + junk + `"}`:    "cert",
		`{"address": "https://x", "ca": "/does/not/exist", "tls": false}`: "ca",
	} {
		_, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
		var argumentErr *sdk.ArgumentError
		if !errors.As(err, &argumentErr) || argumentErr.Argument != argument {
			t.Errorf("%s: got %v, want an error about %s", config, err, argument)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error: %v", config, err)
		}
	}
}

// Secret arguments must not be shown.
func TestSecretArguments(t *testing.T) {
	secret := map[string]bool{"password": true, "token": true}
	for _, a := range Stage().Arguments {
		if a.Secret != secret[a.Name] {
			t.Errorf("argument %s: secret is %v", a.Name, a.Secret)
		}
	}
}
