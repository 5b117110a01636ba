import { expect, test } from 'vitest'

import { commandLine, python } from './snippets-panel'

const SPEC = {
  name: 'it\'s a "test"',
  rounds: 5,
  model: { source: '/m' },
  algorithm: { name: 'ferret', refuse_noisy_rounds: false, local: { options: { 'odd.key': 1 }, targets: ['a'] } },
}

test('a command for a shell', () => {
  expect(commandLine({ values: SPEC, project: 'hearts' })).toBe(
    [
      'ferret submit',
      '--project hearts',
      `--set 'name="it'\\''s a \\"test\\""'`,
      "--set 'rounds=5'",
      `--set 'model.source="/m"'`,
      `--set 'algorithm.name="ferret"'`,
      "--set 'algorithm.refuse_noisy_rounds=false'",
      `--set 'algorithm.local.options={ "odd.key" = 1 }'`,
      `--set 'algorithm.local.targets=["a"]'`,
    ].join(' \\\n  '),
  )
})

test('a clone sets and unsets', () => {
  const values = { seed: 9, algorithm: { K: null } }
  expect(commandLine({ values, original: 'exp_1' })).toBe(
    "ferret experiment clone exp_1 \\\n  --set 'seed=9' \\\n  --unset algorithm.K",
  )
  expect(python({ values, original: 'exp_1' })).toBe(
    `from ferret_sdk import Service

run = Service().experiment("exp_1").clone({
    "seed": 9,
    "algorithm": {
        "K": None,
    },
})
print(run.id)`,
  )
})

test('Python has its own words', () => {
  expect(python({ values: { on: true, off: false, list: ['a', 1], none: {} }, project: 'p' })).toBe(
    `from ferret_sdk import Service

run = Service().submit({
    "on": True,
    "off": False,
    "list": ["a", 1],
    "none": {},
}, project="p")
print(run.id)`,
  )
})
