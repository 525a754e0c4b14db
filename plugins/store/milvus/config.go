package milvus

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

type config struct {
	Address  string `config:"address" default:"127.0.0.1:19530" doc:"host:port, or a URI with https:// for a server with TLS, such as Zilliz Cloud."`
	Database string `config:"database" doc:"The database on the server; its default one if not given."`
	Prefix   string `config:"prefix" default:"racflow" doc:"What the names of all collections on the server begin with."`
	User     string `config:"user" doc:"User name, with a password."`
	Password string `config:"password,secret" doc:"The user's password."`
	Token    string `config:"token,secret" doc:"API key, in place of user and password."`

	TLS        bool     `config:"tls" doc:"Encrypt the connection; https:// does as well."`
	CA         sdk.Path `config:"ca" doc:"PEM file of the authority that signed the server's certificate; the system's if not given."`
	ServerName string   `config:"server_name" doc:"Name in the server's certificate, where it is not that of the address."`
	Cert       sdk.Path `config:"cert" doc:"PEM file of a client certificate, where the server asks for one."`
	Key        sdk.Path `config:"key" doc:"PEM file of its key."`

	Index        string            `config:"index" default:"auto" doc:"Index of the vectors: auto is HNSW where the server has it, else AUTOINDEX. FLAT is exact."`
	IndexParams  map[string]string `config:"index_params" doc:"Parameters that the index is built with, as M and efConstruction of HNSW."`
	SearchParams map[string]string `config:"search_params" doc:"Parameters of a search in it, as ef of HNSW; ef grows with the depth if not given."`
	SparseIndex  string            `config:"sparse_index" default:"SPARSE_INVERTED_INDEX" one_of:"SPARSE_INVERTED_INDEX,SPARSE_WAND" doc:"Index of the words. Both are exact."`
	K1           float64           `config:"k1" default:"1.2" doc:"BM25: how soon more occurrences of a word stop to count, 0 or more."`
	B            float64           `config:"b" default:"0.75" doc:"BM25: how much long texts are held back, 0 to 1."`

	Consistency string `config:"consistency" default:"session" one_of:"strong,session,bounded,eventually" doc:"How new the rows must be that a search sees; by session, all that this run wrote."`
	Shards      int    `config:"shards" default:"1" doc:"Shards of a new collection."`
	Replicas    int    `config:"replicas" default:"1" doc:"Copies of a collection in the server's memory."`
	BatchRows   int    `config:"batch_rows" default:"1000" doc:"Most rows that are written at a time."`
	BatchBytes  int    `config:"batch_bytes" default:"8388608" doc:"About how many bytes are written at a time."`

	ConnectTimeout time.Duration `config:"connect_timeout" default:"10s" doc:"How long a connection may take."`
	CallTimeout    time.Duration `config:"call_timeout" default:"30s" doc:"How long one call may take."`
	RetryTime      time.Duration `config:"retry_time" default:"1m" doc:"How long a call is tried again while the server is away or overloaded."`
}

// maxBatchRows is what Milvus takes at a time without slowing down; batches of
// 5,000 rows take it many times as long.
const maxBatchRows = 2000

// maxBatchBytes stays below the 64 MiB of a message that a server takes.
const maxBatchBytes = 48 << 20

var prefixPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,30}$`)

// check reports everything that is wrong with a config.
func (c *config) check() error {
	var faults []error
	fault := func(argument, format string, a ...any) {
		faults = append(faults, &sdk.ArgumentError{Argument: argument, Err: fmt.Errorf(format, a...)})
	}
	if strings.Contains(c.Address, "@") {
		// The text of it could hold a password.
		fault("address", "user and password do not belong into it: use the arguments user and password")
	} else if _, err := c.endpoint(); err != nil {
		fault("address", "%w", err)
	}
	if !prefixPattern.MatchString(c.Prefix) {
		fault("prefix", "%q is not a letter followed by at most 30 letters and digits", c.Prefix)
	}
	switch {
	case c.Token != "" && (c.User != "" || c.Password != ""):
		fault("token", "give either a token or a user with a password")
	case (c.User == "") != (c.Password == ""):
		fault("user", "user and password belong together")
	}
	if (c.Cert == "") != (c.Key == "") {
		fault("cert", "cert and key belong together")
	}
	if c.Index == "" {
		fault("index", "%q is not the name of an index: use auto, FLAT, HNSW, IVF_FLAT or AUTOINDEX", c.Index)
	}
	if !(c.K1 >= 0) {
		fault("k1", "%v is below 0", c.K1)
	}
	if !(c.B >= 0 && c.B <= 1) {
		fault("b", "%v is not between 0 and 1", c.B)
	}
	for name, n := range map[string]int{"shards": c.Shards, "replicas": c.Replicas} {
		if n < 1 || n > 64 {
			fault(name, "%d is not between 1 and 64", n)
		}
	}
	if c.BatchRows < 1 || c.BatchRows > maxBatchRows {
		fault("batch_rows", "%d is not between 1 and %d", c.BatchRows, maxBatchRows)
	}
	if c.BatchBytes < 1 || c.BatchBytes > maxBatchBytes {
		fault("batch_bytes", "%d is not between 1 and %d", c.BatchBytes, maxBatchBytes)
	}
	for name, d := range map[string]time.Duration{"connect_timeout": c.ConnectTimeout, "call_timeout": c.CallTimeout} {
		if d <= 0 {
			fault(name, "%v is not above 0", d)
		}
	}
	if c.CallTimeout > grace/2 {
		fault("call_timeout", "%v is above %v, after which a reader may miss rows", c.CallTimeout, grace/2)
	}
	if c.RetryTime < 0 {
		fault("retry_time", "%v is below 0", c.RetryTime)
	}
	return errors.Join(faults...)
}
