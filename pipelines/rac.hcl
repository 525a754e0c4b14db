# Sort texts among many labels with a language model that chooses between few:
# RAC, retrieval-augmented classification. The labels of a text's neighbours are
# the only ones allowed, the nearest neighbours are shown as answered questions,
# and the model answers with a JSON object: its reasoning, then the label. An
# answer outside those labels is rejected and asked for again; up to two times.
# README.md lists what is as in the article that described the method, and what is not.
#
#   racflow run -var model=gpt-4o-mini pipelines/rac.hcl
#   racflow run -var model=... -var train=my/labelled.tsv --input my/texts.tsv pipelines/rac.hcl
#   racflow plan -var model=... pipelines/rac.hcl    # what it would ask, and cost
#
# As in the article, the model may rank the labels, of which the first that is allowed is
# the answer, or answer that none fits, by an empty list:
#
#   racflow run -var model=... -var answer=list pipelines/rac.hcl
#
# What the article measured with: 50 neighbours, of which 10 are shown, temperature 0:
#
#   racflow run -var model=... -var answer=list -var neighbours=50 -var shots=10 -var temperature=0 pipelines/rac.hcl

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

variable "neighbours" {
  description = "How many neighbours provide the allowed labels. With more of them the right label is more often allowed."
  default     = 30
}

variable "shots" {
  description = "How many of the nearest neighbours are shown as answered questions."
  default     = 5
}

variable "answer" {
  description = "label: the model answers with one label; list: with labels, the likeliest first, or an empty list where none fits."
  default     = "label"
}

variable "reasoning" {
  description = "Whether the model writes its reasons before the label: better answers for more tokens."
  default     = true
}

variable "none" {
  description = "An answer that says that no label fits, such as none; empty: it has to choose a label. Not with answer=list."
  default     = ""
}

variable "temperature" {
  description = "How varied the answers are. At 0 an answer that was rejected is likely to come again."
  default     = 0.3
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
  }
  store {
    use = var.store

    config "milvus" {
      address = env("MILVUS_ADDRESS", "127.0.0.1:19530")
      token   = secret("MILVUS_TOKEN", "") # USER:PASSWORD or an API key
    }
  }
}

pipeline "rac" {
  input {
    path = "../examples/intent/test.tsv"
  }

  retrieve "neighbours" {
    from  = knowledge.utterances
    top_k = var.neighbours

    fallback "lexical" {
      when = "failed"
      mode = "lexical"
    }
  }

  # The allowed labels, the likeliest first; then the five nearest neighbours.
  prompt "question" {
    use = "chat"

    config {
      shots     = var.shots
      labels    = "neighbours"
      answer    = var.answer
      reasoning = var.reasoning
      none      = var.none
    }
  }

  sample "llm" {
    use       = "openai"
    resamples = 2
    accept    = "answer in candidate_labels"
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
      temperature = var.temperature
    }
  }

  # The first acceptable answer. A person should look at items without one.
  elect "rac" {
    use  = "first"
    flag = "answer == ''"
  }

  # What holds with the example's data, whatever the model. Nobody is asked:
  # racflow test -var model=none pipelines/rac.hcl
  expect "no-leak" {
    description = "Figures are of texts that are not among the examples."
    rule        = "leaked == 0"
  }

  expect "neighbours" {
    description = "A row with the right label is among those that are shown."
    rule        = "found('how do i get out of this monthly plan', 'Please do not renew my plan when it runs out.', 20)"
  }
}
