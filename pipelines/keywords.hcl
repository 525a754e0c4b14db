# Find passages by the questions that people ask, not only by their own words: chunk
# enrichment. A language model names keywords for each chunk of the documents, and
# questions that it answers. They follow the chunk after a delimiter, are embedded and
# searched with it, and are removed again before anybody sees its text.
#
#   racflow run -var model=gpt-4o-mini pipelines/keywords.hcl
#   racflow ask -var docs=my/folder -var model=... pipelines/keywords.hcl "..."
#   racflow plan -var docs=my/folder -var model=... pipelines/keywords.hcl    # what would be asked, and cost
#   racflow eval -var model=... --ablate enrich,lexical pipelines/keywords.hcl
#
# Without a model it searches the chunks as they are. contextual.hcl
# contextualizes chunks and answers questions; both can be done in one file.

variable "docs" {
  description = "The documents: a folder, a glob such as docs/**/*.md, or one file. Or rows of TSV, CSV or JSONL, with the column text."
  type        = path
  default     = "../examples/docs/quern"
}

variable "chunker" {
  description = "How documents are cut: markdown (HTML and PDF, too), code, recursive or sentences."
  default     = "markdown"
}

variable "size" {
  description = "The most tokens of a chunk."
  default     = 200
}

variable "analyzer" {
  description = "Words of the lexical leg: english, german, french and other languages take stems, code splits identifiers, ngram is for languages without spaces, standard for the others."
  default     = "english"
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
  description = "A language model behind an OpenAI-compatible endpoint; empty: none, and chunks stay as they are."
  default     = env("RACFLOW_MODEL", "")
}

variable "base_url" {
  description = "The endpoint of the language model; empty: OpenAI's, or Anthropic's with api=anthropic."
  default     = env("OPENAI_BASE_URL", "")
}

variable "api" {
  description = "The form of the endpoint's requests: openai, which most servers and gateways take, or anthropic."
  default     = "openai"
}

variable "batch" {
  description = "Ask by the service's batches: half the price, answers within 24 hours."
  default     = false
}

variable "price" {
  description = "What a million tokens of the model cost, in and out; --max-cost needs it. 0 where they are free."
  type        = map(number)
  default     = {} # unknown
}

variable "keywords" {
  description = "How many keywords a chunk gets; 0: none."
  default     = 5
}

variable "questions" {
  description = "How many questions a chunk gets; 0: none."
  default     = 3
}

variable "batch_size" {
  description = "How many chunks are asked about at a time."
  default     = 8
}

variable "pack" {
  description = "How many chunks go into one request, at most batch_size. More are cheaper, but harder for a small model."
  default     = 1
}

locals {
  base_url = var.base_url != "" ? var.base_url : var.api == "anthropic" ? "https://api.anthropic.com/v1" : "https://api.openai.com/v1"
}

limit "llm" {
  concurrency = 8 # calls at a time; also requests_per_minute and tokens_per_minute
}

knowledge "docs" {
  source {
    path = var.docs
  }

  chunk {
    use = var.chunker

    config {
      size = var.size
    }
  }

  enrich "keywords" {
    use     = "keywords"
    enabled = var.model != "" && var.keywords > 0
    limit   = limit.llm

    price {
      input  = length(var.price) == 0 ? null : var.price.input
      output = length(var.price) == 0 ? null : var.price.output
    }

    config {
      n          = var.keywords
      batch_size = var.batch_size
      pack       = var.pack
      model      = var.model
      api        = var.api
      base_url   = local.base_url
      api_key    = var.api == "anthropic" ? secret("ANTHROPIC_API_KEY", "") : secret("OPENAI_API_KEY", "") # a local server needs none
      batch      = var.batch
    }
  }

  enrich "questions" {
    use     = "questions"
    enabled = var.model != "" && var.questions > 0
    limit   = limit.llm

    price {
      input  = length(var.price) == 0 ? null : var.price.input
      output = length(var.price) == 0 ? null : var.price.output
    }

    config {
      n          = var.questions
      batch_size = var.batch_size
      pack       = var.pack
      model      = var.model
      api        = var.api
      base_url   = local.base_url
      api_key    = var.api == "anthropic" ? secret("ANTHROPIC_API_KEY", "") : secret("OPENAI_API_KEY", "")
      batch      = var.batch
    }
  }

  embed {
    use = var.embedder
  }

  store {
    use      = var.store
    analyzer = var.analyzer

    config "milvus" {
      address = env("MILVUS_ADDRESS", "127.0.0.1:19530")
      token   = secret("MILVUS_TOKEN", "") # USER:PASSWORD or an API key
    }
  }
}

pipeline "keywords" {
  input {
    path = "../examples/docs/questions.tsv"
  }

  # The 20 nearest by 0.7 * cosine + 0.3 * BM25 (as a share of the best). They
  # show the chunk's own text.
  retrieve "found" {
    from  = knowledge.docs
    top_k = 20

    fallback "words" {
      when = "failed"
      mode = "lexical"
    }
  }

  # What holds with the example's data, by either embedder: racflow test pipelines/keywords.hcl
  expect "recall" {
    rule = var.embedder == "hashing" ? "recall_at(20) >= 0.75 and ndcg >= 0.5" : "recall_at(20) >= 0.88 and ndcg >= 0.57"
  }
}
