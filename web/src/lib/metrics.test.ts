import { expect, test } from 'vitest'

import { formatMetric, type MetricName, METRICS } from './metrics'

test.each([
  ['eval_loss', 1.7, '1.700'],
  ['rouge_l', 35.2409, '35.2 %'],
  ['numbers_sent', 62920, '62,920'],
  ['local_seconds', 0.5, '0.50 s'],
  ['sequences_per_second', 12.345, '12.3'],
  ['peak_memory_bytes', 6.7e8, '670 MB'],
] as const)('%s is written in its unit', (name, value, text) => {
  expect(formatMetric(name, value)).toBe(text)
})

test('every unit of the catalog has a format', () => {
  const names = Object.keys(METRICS) as MetricName[]
  expect(names.filter((name) => formatMetric(name, 0.123456) === '0.123456')).toEqual([])
})
