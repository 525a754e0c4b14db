# Passages of a collection that another program makes, by pymilvus, LangChain, LlamaIndex
# or a nightly job. racflow reads it and never writes to it; README.md beside this file
# says which rights that takes.
#
#   racflow plan --input questions.tsv examples/milvus/attached.hcl     # what was found in it, and whether the embedder is its own
#   racflow ask examples/milvus/attached.hcl "how do I ..."

variable "collection" {
  description = "The collection, or an alias that its owner moves to the next one."
  default     = "docs"
}

variable "embedder" {
  description = "The embedder that the collection's vectors were made with."
  default     = "minilm"
}

knowledge "docs" {
  embed {
    use = var.embedder
  }
  store {
    use = "milvus"

    config {
      address    = env("MILVUS_ADDRESS", "127.0.0.1:19530")
      token      = secret("MILVUS_TOKEN", "") # of a user who may only read
      collection = var.collection

      # What is left out here is found by type and usual names; plan shows it.
      fields {
        id     = "pk"
        text   = "content"
        vector = "embedding"
        meta   = ["lang", "year"]
      }
    }
  }
}

pipeline "ask" {
  # By words, too, where the collection has a BM25 function; plan says if it has none.
  retrieve "found" {
    from   = knowledge.docs
    top_k  = 20
    filter = "meta.lang == 'en'" # by the server
  }
}
