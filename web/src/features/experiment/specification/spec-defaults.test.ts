import { expect, test } from 'vitest'

import type { Experiment } from '@/api/types'
import { type JsonSchema, withoutDefaults } from '@/lib/defaults'
import { isTable } from '@/lib/toml'

import { SPEC_DEFAULTS, specDefaults } from './spec-defaults'

const TEXTS = import.meta.glob<string>('../../../../../openapi.json', { query: '?raw', import: 'default', eager: true })

interface Document {
  components: { schemas: Record<string, JsonSchema & { required?: string[] }> }
}

/** Defaults by the server's own document; what is optional and has none there is null. */
function documented(name: string, schemas: Document['components']['schemas']): Record<string, unknown> {
  const { properties = {}, required = [] } = schemas[name] ?? {}
  return Object.fromEntries(
    Object.entries(properties).flatMap(([field, property]) => {
      const inner = property.$ref?.split('/').at(-1) ?? ''
      if (inner.endsWith('Spec')) return [[field, documented(inner, schemas)]]
      if ('default' in property) return [[field, property.default]]
      return required.includes(field) ? [] : [[field, null]]
    }),
  )
}

test('the defaults equal the server’s', () => {
  const document = JSON.parse(Object.values(TEXTS)[0] ?? '') as Document
  expect(SPEC_DEFAULTS).toEqual(documented('ExperimentSpec', document.components.schemas))
})

const SPEC = {
  name: 'demo',
  ...SPEC_DEFAULTS,
  rounds: 5,
  participants: { ...SPEC_DEFAULTS.participants, simulated: 4 },
  round: { ...SPEC_DEFAULTS.round, quorum: 1 },
  dataset: { name: 'jsonl', train: 'a.jsonl', shuffle: true },
  algorithm: { name: 'ferret', K: 64, local: { steps: 8, learning_rate: 0.1 } },
} as unknown as Experiment['spec']

test('what was chosen is left, the algorithm by name', () => {
  const schemas = {
    algorithm: {
      $defs: { Local: { properties: { steps: { default: 8 }, learning_rate: { default: 0.001 } } } },
      properties: { K: { default: null }, local: { $ref: '#/$defs/Local' } },
    },
    dataset: { properties: { train: {}, shuffle: { default: true } } },
  }
  const left = withoutDefaults(SPEC, specDefaults(SPEC, schemas))
  expect(left).toEqual({
    name: 'demo',
    rounds: 5,
    participants: { simulated: 4 },
    dataset: { name: 'jsonl', train: 'a.jsonl' },
    algorithm: { name: 'ferret', K: 64, local: { learning_rate: 0.1 } },
  })
  expect(isTable(left)).toBe(true)
})
