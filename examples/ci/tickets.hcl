# Sort tickets into queues by the nearest examples, and what that has to reach: racflow test
# tickets.hcl. It needs no model and no service.

variable "train" {
  description = "Labelled examples: a file with columns text and label."
  type        = path
  default     = "../intent/train.tsv"
}

knowledge "tickets" {
  source {
    path = var.train
  }
  embed {
    use = "hashing"
  }
  store {
    use = "local"
  }
}

pipeline "tickets" {
  input {
    path = "../intent/test.tsv"
  }

  retrieve "near" {
    from = knowledge.tickets
  }
  sample "neighbours" {
    use = "neighbours"
  }
  sample "prototype" {
    use = "prototype"
  }
  elect "queue" {
    use    = "soft"
    accept = "answer in labels"
    flag   = "agreement < 0.3"
  }

  expect "accuracy" {
    description = "Below this, people sort faster by hand."
    rule        = "accuracy >= 0.42"
  }

  expect "cancel" {
    description = "Whoever wants to leave must not be lost."
    rule        = "recall('subscription_cancel') >= 0.4"
  }

  expect "known" {
    rule = "answer('I want to cancel my subscription') == 'subscription_cancel'"
  }

  expect "no-leak" {
    description = "Figures are of texts that are not among the examples."
    rule        = "leaked == 0 and failed == 0"
  }
}
