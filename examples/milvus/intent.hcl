# The shop's intents, with the examples kept on a Milvus server; README.md
# beside this file says how to get one.
#
#   racflow run examples/milvus/intent.hcl

variable "embedder" {
  description = "minilm, or hashing where the model cannot be had (weaker)."
  default     = "minilm"
}

knowledge "shop" {
  source {
    path = "../intent/train.tsv"
  }
  embed {
    use = var.embedder
  }
  store {
    use = "milvus"

    config {
      address = env("MILVUS_ADDRESS", "127.0.0.1:19530")
      token   = secret("MILVUS_TOKEN", "") # USER:PASSWORD or an API key; leave it out where there are no users
      prefix  = "shop"                     # two files that share a server do not meet
      index   = "FLAT"                     # exact; leave it out for HNSW, where that takes too long

      # How long a run waits for a server that is away before it gives up.
      retry_time = "2m"
    }
  }
}

pipeline "intent" {
  input {
    path = "../intent/test.tsv"
  }
  retrieve "neighbours" {
    from  = knowledge.shop
    top_k = 60
  }
  sample "neighbours" {
    use = "neighbours"
  }
  sample "prototype" {
    use = "prototype"
  }
  elect "intent" {
    use = "soft"
  }
}
