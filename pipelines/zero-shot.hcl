# Sort texts with a language model that sees the labels and nothing else: the
# baseline for the methods with retrieval.
#
#   racflow run  -var model=gpt-4o-mini pipelines/zero-shot.hcl
#   racflow eval -var model=... -var train=my/labelled.tsv --input my/held-out.tsv pipelines/zero-shot.hcl

variable "train" {
  description = "Where the labels are taken from: a TSV, CSV or JSONL file with columns text and label. One row per label will do."
  type        = path
  default     = "../examples/intent/train.tsv"
}

variable "model" {
  description = "The language model, as its server names it. It is needed: -var model=... or RACFLOW_MODEL."
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

variable "reasoning" {
  description = "Whether the model writes its reasons before the label."
  default     = false
}

variable "none" {
  description = "An answer that says that no label fits, such as none; empty: it has to choose a label."
  default     = ""
}

locals {
  base_url = var.base_url != "" ? var.base_url : var.api == "anthropic" ? "https://api.anthropic.com/v1" : "https://api.openai.com/v1"
}

limit "llm" {
  concurrency = 8 # calls at a time; also requests_per_minute and tokens_per_minute
}

knowledge "labels" {
  source {
    path  = var.train
    text  = "text"
    label = "label"
  }
  embed {
    use = "hashing" # nothing is searched by it
  }
  store {
    use = "local"
  }
}

pipeline "zero-shot" {
  input {
    path = "../examples/intent/test.tsv"
  }

  # The labels come from here; the candidates are dropped.
  retrieve "labels" {
    from  = knowledge.labels
    mode  = "lexical"
    top_k = 1
    keep  = "false"
  }

  # All labels, sorted: the beginning is the same for every text, and a server
  # with a prefix cache reads it once.
  prompt "question" {
    use = "chat"

    config {
      shots     = 0
      labels    = "all"
      reasoning = var.reasoning
      none      = var.none
    }
  }

  sample "llm" {
    use       = "openai"
    resamples = 2
    accept    = "answer in labels"
    limit     = limit.llm

    price {
      input  = length(var.price) == 0 ? null : var.price.input
      output = length(var.price) == 0 ? null : var.price.output
    }

    config {
      model       = var.model
      api         = var.api
      base_url    = local.base_url
      api_key     = var.api == "anthropic" ? secret("ANTHROPIC_API_KEY", "") : secret("OPENAI_API_KEY", "") # a local server needs none
      batch       = var.batch
      temperature = 0.3
    }
  }

  elect "answer" {
    use  = "first"
    flag = "answer == ''"
  }

  # What holds with the example's data, whatever the model. Nobody is asked:
  # racflow test -var model=none pipelines/zero-shot.hcl
  expect "no-leak" {
    description = "Figures are of texts that are not among the examples."
    rule        = "leaked == 0"
  }
}
