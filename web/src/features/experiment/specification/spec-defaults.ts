import type { Experiment } from '@/api/types'
import { type JsonSchema, schemaDefaults } from '@/lib/defaults'

type Spec = Experiment['spec']
type Table = Record<string, unknown>

/** The defaults of the specification's JSON schema; a test compares them with openapi.json. */
export const SPEC_DEFAULTS = {
  seed: 0,
  rounds: 12,
  model: { revision: null, digest: null, dtype: 'float32' },
  prompt: { template: 'auto', max_tokens: 1024 },
  partition: { name: 'iid' },
  participants: { simulated: 0, edge: 0, fraction: 1, approval: false },
  algorithm: { name: 'ferret' },
  server: {
    optimizer: 'sgd',
    learning_rate: 1,
    momentum: 0,
    beta1: 0.9,
    beta2: 0.99,
    tau: 0.001,
    schedule: 'constant',
    warmup_rounds: 0,
    weights: 'equal',
    step_guard: false,
    max_loss_rise: 0.05,
    development_examples: 16,
  },
  round: { deadline_seconds: null, quorum: null, over_selection: 0, attempts: 3 },
  robust: {
    rule: 'clip',
    clip_factor: 2,
    reject_factor: 4,
    min_cosine_share: 0.1,
    trim: 0.2,
    max_example_factor: 3,
    max_loss_ratio: 2,
  },
  secure: { aggregation: 'none', least: 3, colluders: 1, group: 0, clip: 1 },
  privacy: {
    unit: 'site',
    epsilon: null,
    mechanism: 'distributed',
    noise_multiplier: null,
    delta: 1e-6,
    batch: null,
    records_least: null,
  },
  evaluation: {
    split: 'test',
    validation_share: 0.1,
    every: 1,
    examples: 256,
    generate_examples: 64,
    max_new_tokens: 64,
    batch_size: 32,
    by_label: false,
  },
  stopping: { metric: 'eval_loss', patience: null, min_delta: 0 },
  checkpoint: { every: 1, keep: 2, keep_best: 1 },
} as const

/** The sections with options described by the server's catalog, each by its chosen name. */
export const CHOICES = { algorithm: 'algorithms', dataset: 'datasets', partition: 'partitions' } as const
export type Section = keyof typeof CHOICES

/** All defaults for a specification. The server fills in the quorum, which is one half with edge participants. */
export function specDefaults(spec: Spec, schemas: Partial<Record<Section, JsonSchema>>): Table {
  const options = Object.fromEntries(
    (Object.keys(CHOICES) as Section[]).map((section) => [section, schemaDefaults(schemas[section])]),
  )
  return {
    ...SPEC_DEFAULTS,
    ...options,
    // The algorithm is always named: what follows are its options.
    partition: { ...SPEC_DEFAULTS.partition, ...options.partition },
    round: { ...SPEC_DEFAULTS.round, quorum: spec.participants.edge ? 0.5 : 1 },
  }
}
