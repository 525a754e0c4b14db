# RAGE, retrieval-augmented generation and election, as its paper has it: Algorithm 1
# with k = 60 neighbours and l = 10 random examples in every prompt (Saha, "RAGE -
# Retrieval Augmented Generation and Election Algorithm for Few-shot Intent
# Classification", 2023). The vote of the 15 nearest neighbours and n answers of each
# model are one vote each, the most frequent label wins, the neighbours win a tie.
# methods.md compares each element with the paper. intent.hcl has more voters, and
# asks a model once per item rather than once per sample.
#
#   racflow run  -var model=... -var base_url=... pipelines/rage.hcl
#   racflow eval -var model=... -var train=my/labelled.tsv --input my/held-out.tsv pipelines/rage.hcl
#
# Base models served by vLLM or llama.cpp are meant: chat models continue such a prompt
# with talk. Three models vote as in the paper, with 3, 4 and 6 samples:
#
#   racflow run -var model=... -var model_2=... -var model_3=... pipelines/rage.hcl
#
# A model behind an endpoint of its own (base_url_2, base_url_3) has a key of its own:
# OPENAI_API_KEY_2, OPENAI_API_KEY_3.
#
# How many answers are acceptable labels, by the number of shots (Figure 2: one model,
# five samples, one random example, so that 5, 20 and 60 shots are k = 4, 19 and 59):
#
#   racflow eval -var model=... -var n=5 -var l=1 --sweep var.k=4,19,59 pipelines/rage.hcl

variable "train" { # labelled examples: rows with the columns text and label
  type    = path
  default = "../examples/intent/train.tsv"
}
variable "embedder" { default = "minilm" } # or hashing, which needs no model and is weaker
variable "store" { default = "local" }     # or milvus, at MILVUS_ADDRESS
variable "k" { default = 60 }              # how many of the nearest examples stand in a prompt
variable "l" { default = 10 }              # random ones before them, drawn anew for each model and sample
variable "temperature" { default = 0.5 }

# The models, each with its endpoint (empty: as of the first), its samples and its price of a
# million tokens, { input = 0.15, output = 0.6 }. Without a model the neighbours vote alone.
variable "model" { default = env("RACFLOW_MODEL", "") }
variable "provider" { default = "openai" } # or a plugin's stage (mine/mine)
variable "base_url" { default = "" }       # empty: OPENAI_BASE_URL, or the provider's own
variable "n" { default = 3 }
variable "price" { default = {} }
variable "model_2" { default = "" }
variable "base_url_2" { default = "" }
variable "n_2" { default = 4 }
variable "price_2" { default = {} }
variable "model_3" { default = "" }
variable "base_url_3" { default = "" }
variable "n_3" { default = 6 }
variable "price_3" { default = {} }

model "llm_1" {
  name     = var.model
  provider = var.provider
  base_url = var.base_url
  price    = var.price
}
model "llm_2" {
  name     = var.model_2
  provider = var.provider
  base_url = var.base_url_2 == "" ? var.base_url : var.base_url_2
  api_key  = var.base_url_2 == "" ? secret("OPENAI_API_KEY", "") : secret("OPENAI_API_KEY_2", "")
  price    = var.price_2
}
model "llm_3" {
  name     = var.model_3
  provider = var.provider
  base_url = var.base_url_3 == "" ? var.base_url : var.base_url_3
  api_key  = var.base_url_3 == "" ? secret("OPENAI_API_KEY", "") : secret("OPENAI_API_KEY_3", "")
  price    = var.price_3
}

knowledge "utterances" {
  source { path = var.train }
  embed { use = var.embedder }
  store { use = var.store }
}

pipeline "rage" {
  input { path = "../examples/intent/test.tsv" }

  # The nearest by their vectors alone.
  retrieve "neighbours" {
    top_k = max(var.k, 15)
    mode  = "dense"
  }

  # The 15-NN vote: each neighbour counts alike, and majority takes the label that most
  # of them have, of several the one of the nearest, as one vote.
  sample "knn" {
    use = "neighbours"
    config {
      k         = 15
      sharpness = 0
    }
  }

  # Each model has prompts of its own, one for each of its samples. Another seed draws
  # other random examples.
  prompt "shots_1" {
    use   = "completion"
    model = model.llm_1
    config {
      k        = var.k
      random   = var.l
      redraw   = "sample"
      seed     = 0
      labels   = false
      template = "rage.tmpl"
    }
  }
  sample "llm_1" {
    model = model.llm_1
    n     = var.n
    config "openai" {
      endpoint    = "completions"
      read        = "exact"
      temperature = var.temperature
      max_tokens  = 10
      stop        = ["\n"]
    }
  }
  prompt "shots_2" {
    use   = "completion"
    model = model.llm_2
    config {
      k        = var.k
      random   = var.l
      redraw   = "sample"
      seed     = 1
      labels   = false
      template = "rage.tmpl"
    }
  }
  sample "llm_2" {
    model = model.llm_2
    n     = var.n_2
    config "openai" {
      endpoint    = "completions"
      read        = "exact"
      temperature = var.temperature
      max_tokens  = 10
      stop        = ["\n"]
    }
  }
  prompt "shots_3" {
    use   = "completion"
    model = model.llm_3
    config {
      k        = var.k
      random   = var.l
      redraw   = "sample"
      seed     = 2
      labels   = false
      template = "rage.tmpl"
    }
  }
  sample "llm_3" {
    model = model.llm_3
    n     = var.n_3
    config "openai" {
      endpoint    = "completions"
      read        = "exact"
      temperature = var.temperature
      max_tokens  = 10
      stop        = ["\n"]
    }
  }

  # An answer that is no label, letter by letter, has no vote. The paper asks people about
  # items on which the voters differ, without saying how much: less than half the votes.
  elect "rage" {
    use    = "majority"
    accept = "answer in labels"
    flag   = "agreement < 0.5"
  }

  # What holds with the example's data, by either embedder: racflow test pipelines/rage.hcl
  expect "accuracy" {
    rule = var.embedder == "hashing" ? "accuracy >= 0.41" : "accuracy >= 0.65"
  }

  expect "no-leak" { rule = "leaked == 0 and failed == 0" }
}
