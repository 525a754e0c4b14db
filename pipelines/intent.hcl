# Sort utterances into intents: retrieve labelled neighbours, let several
# voters vote, elect. The idea is that of RAGE, retrieval-augmented generation and
# election; rage.hcl is that method as published. This file has more voters, another
# prompt and another election, and asks a model once per item. Without a language
# model the statistical voters elect alone. How much each of them counts, the election
# learns from the examples.
#
#   racflow run pipelines/intent.hcl
#   racflow run -var train=my/labelled.tsv --input my/texts.tsv pipelines/intent.hcl
#   racflow run -var model=gpt-4o-mini pipelines/intent.hcl
#
# With every answer of a model as a vote, and a prompt of its own for each:
#
#   racflow run -var model=... -var election=majority -var redraw=sample pipelines/intent.hcl
#
# To send only doubtful items to the model, find the threshold on rows with labels:
#
#   racflow tune -var model=... --input my/held-out.tsv pipelines/intent.hcl

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
  description = "minilm; hashing where that cannot be had (weaker); encoder for another model on this machine."
  default     = "minilm"
}

variable "encoder" {
  description = "The encoder's model: a name of racflow model list, or a folder."
  type        = path
  default     = "bge-small-en-v1.5"
}

variable "model" {
  description = "A language model behind an OpenAI-compatible endpoint; empty: vote without one."
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

variable "redraw" {
  description = "Random examples anew for each item, each sample of it (one request per sample), or only the run."
  default     = "item"
}

variable "none" {
  description = "An answer of the model that says that no label fits, such as none; empty: it has to choose a label."
  default     = ""
}

variable "margin_below" {
  description = "Items on which the voters agree by less than this margin are sent to the model; 2: all. racflow tune finds a value."
  default     = 2
}

variable "election" {
  description = "learned weighs the voters as examples teach it, soft averages their distributions, majority counts their answers, weighted counts voters by their accuracy."
  default     = "learned"
}

variable "weights" {
  description = "How much each voter counts: for soft and majority 1 where it is not given, for learned what the examples teach. racflow tune finds values."
  type        = map(number)
  default     = {}
}

variable "leader" {
  description = "The voter whose answer stands wherever it has one, for learned. racflow tune finds whether one should lead."
  default     = ""
}

variable "calibration" {
  description = "The slope and offset of the confidence, for learned. racflow tune finds them."
  type        = map(number)
  default     = {}
}

variable "flag_below" {
  description = "Answers with less confidence are flagged for a person to look at. racflow tune --accuracy finds a value."
  default     = 0.5
}

variable "accuracy" {
  description = "The accuracy of each voter, for weighted. racflow tune measures it."
  type        = map(number)
  default     = {}
}

locals {
  base_url = var.base_url != "" ? var.base_url : var.api == "anthropic" ? "https://api.anthropic.com/v1" : "https://api.openai.com/v1"
}

limit "llm" {
  concurrency = 8 # calls at a time; also requests_per_minute and tokens_per_minute
}

knowledge "utterances" {
  source {
    path  = var.train
    text  = "text"
    label = "label"
  }
  embed {
    use = var.embedder

    config "encoder" {
      model = var.encoder
    }
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

  # ... the nearest label centroids of the whole knowledge for theirs ...
  sample "prototype" {
    use = "prototype"
  }

  # ... and so does a logistic regression over vectors, words and letters.
  sample "linear" {
    use = "linear"
  }

  # Random examples first, then neighbours, the nearest last.
  prompt "shots" {
    use = "completion"

    config {
      redraw = var.redraw
      none   = var.none
    }
  }

  # A model votes n times. A second model is a second block like this one, with
  # another name: the election takes as many as there are, and the order of the
  # blocks decides ties. Models that share an endpoint share its limit.
  sample "llm" {
    use     = "openai"
    enabled = var.model != ""
    when    = "margin < var.margin_below"
    n       = 6
    limit   = limit.llm

    price {
      input  = length(var.price) == 0 ? null : var.price.input
      output = length(var.price) == 0 ? null : var.price.output
    }

    config {
      model    = var.model
      api      = var.api
      base_url = local.base_url
      api_key  = var.api == "anthropic" ? secret("ANTHROPIC_API_KEY", "") : secret("OPENAI_API_KEY", "") # a local server needs none
      batch    = var.batch
    }
  }

  elect "intent" {
    use    = var.election
    accept = "answer in labels"
    flag   = "confidence < var.flag_below"

    config "learned" {
      weights     = var.weights
      leader      = var.leader
      calibration = var.calibration
    }

    config "soft" {
      weights = var.weights
    }

    config "majority" {
      weights = var.weights
    }

    config "weighted" {
      accuracy = var.accuracy
    }
  }

  # What holds with the example's data, by either embedder: racflow test pipelines/intent.hcl
  expect "accuracy" {
    rule = var.embedder == "hashing" ? "accuracy >= 0.45 and low(accuracy) >= 0.4" : "accuracy >= 0.73 and low(accuracy) >= 0.67"
  }

  expect "answered" {
    description = "Enough answers can be relied on, and the others are flagged."
    rule        = "answered(0.8) >= 0.6"
    enabled     = var.embedder != "hashing"
  }

  expect "cancel" {
    rule = "answer('how do i get out of this monthly plan') == 'subscription_cancel'"
  }

  expect "no-leak" {
    description = "Figures are of texts that are not among the examples."
    rule        = "leaked == 0 and failed == 0"
  }
}
