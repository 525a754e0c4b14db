# Sort utterances into intents: retrieve labelled neighbours, let several
# voters vote, elect. The method is RAGE, retrieval-augmented generation and
# election; without a language model the statistical voters elect alone.
#
#   racflow run pipelines/intent.hcl
#   racflow run -var train=my/labelled.tsv --input my/texts.tsv pipelines/intent.hcl

variable "train" {
  description = "Labelled examples: a TSV, CSV or JSONL file with columns text and label."
  type        = path
  default     = "../examples/intent/train.tsv"
}

variable "store" {
  description = "Where the knowledge is kept."
  default     = "local"
}

variable "embedder" {
  description = "minilm, or hashing where the model cannot be had (weaker)."
  default     = "minilm"
}

variable "model" {
  description = "A language model behind an OpenAI-compatible endpoint; empty: vote without one."
  default     = env("RACFLOW_MODEL", "")
}

variable "base_url" {
  description = "The endpoint of the language model."
  default     = env("OPENAI_BASE_URL", "https://api.openai.com/v1")
}

variable "election" {
  description = "soft averages the voters' distributions, majority counts their answers."
  default     = "soft"
}

knowledge "utterances" {
  source {
    path  = var.train
    text  = "text"
    label = "label"
  }
  embed {
    use = var.embedder
  }
  store {
    use = var.store

    config "milvus" {
      address = env("MILVUS_ADDRESS", "127.0.0.1:19530")
      token   = secret("MILVUS_TOKEN", "") # USER:PASSWORD or an API key
    }
  }
}

pipeline "intent" {
  input {
    path = "../examples/intent/test.tsv"
  }

  # The 60 nearest by 0.7 * cosine + 0.3 * BM25 (as a share of the best).
  retrieve "neighbours" {
    from  = knowledge.utterances
    top_k = 60

    fallback "lexical" {
      when = "failed"
      mode = "lexical"
    }
  }

  # The nearest neighbours vote for their labels ...
  sample "neighbours" {
    use = "neighbours"
  }

  # ... and the nearest label centroids of the whole knowledge for theirs.
  sample "prototype" {
    use = "prototype"
  }

  # Random examples first, then neighbours, the nearest last.
  prompt "shots" {
    use = "completion"
  }

  sample "llm" {
    use     = "openai"
    enabled = var.model != ""
    n       = 6

    config {
      model    = var.model
      base_url = var.base_url
      api_key  = secret("OPENAI_API_KEY", "") # a local server wants none
    }
  }

  elect "intent" {
    use    = var.election
    accept = "answer in labels"
    flag   = "agreement < 0.4"
  }
}
