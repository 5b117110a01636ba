import { expect, test } from 'vitest'

import type { Round } from '@/api/types'

import { epsilon, protectedRecords, sumText } from './privacy-text'

const GROUP: Round['groups'][number] = { name: 'group-1', members: 5, survivors: 5, dropped: [], refused: null }

test('a sum names the participants that dropped out', () => {
  expect(sumText({ groups: [{ ...GROUP, survivors: 4, dropped: ['Hospital E'] }] })).toBe('4 of 5, without Hospital E')
})

test('several sums have their names, and one that was left out its reason', () => {
  const far = { ...GROUP, name: 'group-2', refused: 'its norm is 9 times the median' }
  expect(sumText({ groups: [GROUP, far] })).toBe(
    'group-1: 5 of 5; group-2: 5 of 5, left out of the model: its norm is 9 times the median',
  )
})

test('noise protects an example or all examples of a person', () => {
  expect(protectedRecords('example')).toBe('each example')
  expect(protectedRecords('field:patient_id')).toBe('all examples with the same patient_id')
})

test('ε is the last round’s, and absent where nothing is protected', () => {
  const point = { time: '', bytes_up: 0 }
  const points = [
    { ...point, round: 1, value: 4.1 },
    { ...point, round: 2, value: 5.2 },
  ]
  expect(epsilon([{ name: 'epsilon', points }])).toBe(5.2)
  expect(epsilon([])).toBeUndefined()
})
