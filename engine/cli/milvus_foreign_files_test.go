package cli

// embeddedKnowledge and attachedKnowledge are the same rows: in files beside the pipeline, and in a
// collection, by address, name and further arguments. The vectors of these collections are float32.
const (
	embeddedKnowledge = `
knowledge "rows" {
  source {
    path = "rows.jsonl"
    %s
  }
  embed {
    use = "minilm"
    config { precision = "float32" }
  }
  store {
    use      = "local"
    analyzer = var.analyzer
  }
}
`
	attachedKnowledge = `
knowledge "rows" {
  embed {
    use = "minilm"
    config { precision = "float32" }
  }
  store {
    use = "milvus"
    config {
      address    = %q
      collection = %q
      %s
    }
  }
}
`
)

// foreignPipelines show the uses of a knowledge: search it, let it vote, show its examples to a
// model, and ask a model that answers from passages.
const foreignPipelines = `
variable "analyzer" { default = "standard" }
variable "mode"     { default = "dense" }
variable "url"      { default = "http://127.0.0.1:9/v1" }
%s
pipeline "found" {
  retrieve "near" {
    from  = knowledge.rows
    top_k = 10
    mode  = var.mode
  }
}
pipeline "filtered" {
  retrieve "near" {
    from   = knowledge.rows
    top_k  = 10
    mode   = var.mode
    filter = "meta.lang == item.meta.lang and (meta.year >= 2020 or meta.urgent) and meta.weight < 60 and label not in ['card_lost', 'order_status']"
  }
}
pipeline "nested" {
  retrieve "near" {
    from   = knowledge.rows
    top_k  = 10
    mode   = "dense"
    filter = "meta.team == 'a' and meta.level >= 1"
  }
}
pipeline "tenant" {
  retrieve "near" {
    from   = knowledge.rows
    top_k  = 10
    mode   = "dense"
    filter = "meta.lang == item.meta.lang"
  }
}
pipeline "without" {
  retrieve "near" {
    from   = knowledge.rows
    top_k  = 10
    mode   = "dense"
    filter = "meta.note != 'at once' and meta.lang == item.meta.lang"
  }
}
pipeline "voted" {
  retrieve "near" {
    from = knowledge.rows
    mode = var.mode
  }
  sample "neighbours" { use = "neighbours" }
  sample "prototype"  { use = "prototype" }
  sample "linear"     { use = "linear" }
  elect "soft" { use = "soft" }
}
pipeline "shown" {
  retrieve "near" {
    from = knowledge.rows
    mode = var.mode
  }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use = "openai"
    config {
      model    = "test-model"
      base_url = var.url
    }
  }
  elect "soft" { use = "soft" }
}
pipeline "asked" {
  retrieve "near" {
    from  = knowledge.rows
    mode  = var.mode
    top_k = 30
  }
  rerank "best" {
    use   = "local"
    top_k = 5
  }
  prompt "question" { use = "answer" }
  sample "llm" {
    use = "openai"
    config {
      model    = "test-model"
      base_url = var.url
    }
  }
  elect "answer" { use = "first" }
}
`
