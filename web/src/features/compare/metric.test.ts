import { expect, test } from 'vitest'

import { formatDifference, improves, metricNames, metricOf } from './metric'

function series(name: string, points = 1) {
  return { name, points: Array.from({ length: points }, () => ({ round: 1, value: 1, time: '', bytes_up: 0 })) }
}

test('a metric of the catalog, a label of one, and a stranger', () => {
  expect(metricOf('eval_loss')).toMatchObject({ label: 'Evaluation loss', unit: 'nats per token', better: 'low' })
  expect(metricOf('rouge_l/sums')).toMatchObject({ label: 'Rouge-L: sums', better: 'high' })
  expect(metricOf('bytes_up').better).toBeUndefined()
  expect(metricOf('new/thing')).toMatchObject({ label: 'new/thing', better: undefined })
  expect(metricOf('rouge_l/sums').format(41.25)).toBe('41.3 %')
})

test('quality comes first, labels last, and what nobody has is not offered', () => {
  const runs = [
    { series: [series('eval_loss/b'), series('bytes_up'), series('train_loss')] },
    { series: [series('eval_loss'), series('rouge_l', 0)] },
  ]
  expect(metricNames(runs)).toEqual(['eval_loss', 'train_loss', 'bytes_up', 'eval_loss/b'])
})

test('a difference has its sign, and is marked as an improvement or not', () => {
  const loss = metricOf('eval_loss')
  expect([formatDifference(loss, -0.25), formatDifference(loss, 0.25), formatDifference(loss, 0)]).toEqual([
    '−0.2500',
    '+0.2500',
    '±0',
  ])
  expect([improves(loss, -1), improves(loss, 1), improves(loss, 0)]).toEqual([true, false, undefined])
  expect([improves(metricOf('rouge_l'), 1), improves(metricOf('bytes_up'), 1)]).toEqual([true, undefined])
})
