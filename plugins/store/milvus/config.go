package milvus

import (
	"errors"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Milvus takes up to 2,000 rows at a time without slowing down (5,000 take it many
// times as long), and messages of 64 MiB. A call that takes longer than half of
// grace may miss rows.
type config struct {
	Address  string `config:"address" affects_output:"false" default:"127.0.0.1:19530" doc:"host:port, or a URI with https:// for a server with TLS, such as Zilliz Cloud."`
	Database string `config:"database" affects_output:"false" doc:"The database on the server; its default one if not given."`
	Prefix   string `config:"prefix" affects_output:"false" default:"racflow" pattern:"^[A-Za-z][A-Za-z0-9]{0,30}$" example:"racflow" doc:"What the names of all collections on the server begin with."`
	User     string `config:"user" affects_output:"false" requires:"password" conflicts:"token" doc:"User name, with a password."`
	Password string `config:"password,secret" requires:"user" doc:"The user's password."`
	Token    string `config:"token,secret" doc:"API key, in place of user and password."`

	TLS        bool     `config:"tls" affects_output:"false" doc:"Encrypt the connection; https:// does as well."`
	CA         sdk.Path `config:"ca" affects_output:"false" doc:"PEM file of the authority that signed the server's certificate; the system's if not given."`
	ServerName string   `config:"server_name" affects_output:"false" doc:"Name in the server's certificate, where it is not that of the address."`
	Cert       sdk.Path `config:"cert" affects_output:"false" requires:"key" doc:"PEM file of a client certificate, where the server asks for one."`
	Key        sdk.Path `config:"key" affects_output:"false" requires:"cert" doc:"PEM file of its key."`

	Index        string            `config:"index" default:"auto" min_length:"1" doc:"Index of the vectors: auto is HNSW where the server has it, else AUTOINDEX. FLAT is exact."`
	IndexParams  map[string]string `config:"index_params" example:"{ M = \"32\" }" doc:"Parameters that the index is built with, as M and efConstruction of HNSW."`
	SearchParams map[string]string `config:"search_params" example:"{ ef = \"512\" }" doc:"Parameters of a search in it, as ef of HNSW; ef grows with the depth if not given."`
	SparseIndex  string            `config:"sparse_index" affects_output:"false" default:"SPARSE_INVERTED_INDEX" one_of:"SPARSE_INVERTED_INDEX,SPARSE_WAND" doc:"Index of the words. Both are exact."`
	K1           float64           `config:"k1" default:"1.2" min:"0" doc:"BM25: how soon more occurrences of a word stop to count, 0 or more."`
	B            float64           `config:"b" default:"0.75" min:"0" max:"1" doc:"BM25: how much long texts are held back, 0 to 1."`

	Consistency string `config:"consistency" default:"session" one_of:"strong,session,bounded,eventually" doc:"How new the rows must be that a search sees; by session, all that this run wrote."`
	Shards      int    `config:"shards" affects_output:"false" default:"1" min:"1" max:"64" doc:"Shards of a new collection."`
	Replicas    int    `config:"replicas" affects_output:"false" default:"1" min:"1" max:"64" doc:"Copies of a collection in the server's memory."`
	BatchRows   int    `config:"batch_rows" affects_output:"false" default:"1000" min:"1" max:"2000" doc:"Most rows that are written at a time."`
	BatchBytes  int    `config:"batch_bytes" affects_output:"false" default:"8388608" min:"1" max:"50331648" doc:"About how many bytes are written at a time."`

	ConnectTimeout time.Duration `config:"connect_timeout" affects_output:"false" default:"10s" above:"0s" doc:"How long a connection may take."`
	CallTimeout    time.Duration `config:"call_timeout" affects_output:"false" default:"30s" above:"0s" max:"1m" doc:"How long one call may take."`
	RetryTime      time.Duration `config:"retry_time" affects_output:"false" default:"1m" min:"0s" doc:"How long a call is tried again while the server is away or overloaded."`
}

// check reports what tags cannot say.
func (c config) check() error {
	if strings.Contains(c.Address, "@") {
		// The text of it could hold a password.
		return &sdk.ArgumentError{Argument: "address", Err: errors.New("user and password do not belong into it: use the arguments user and password")}
	}
	_, err := newServer(c)
	return err
}
