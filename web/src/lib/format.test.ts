import { describe, expect, it, test } from 'vitest'

import {
  byteTick,
  clockTicks,
  formatAgo,
  formatBytes,
  formatClock,
  formatElapsedTick,
  formatLoss,
  formatPercent,
  formatRatio,
  formatSeconds,
  plainTick,
  secondsBetween,
  shortDigest,
} from './format'

test.each([
  [0, '0 B'],
  [812, '812 B'],
  [8192, '8.19 kB'],
  [40_960, '41 kB'],
  [999_400, '999 kB'],
  [999_999, '1 MB'],
  [1_638_400, '1.64 MB'],
  [6.7e9, '6.7 GB'],
  [4e15, '4 PB'],
  [5e18, '5000 PB'],
])('formatBytes(%d) is %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test.each([
  [1.7, '1.700'],
  [2.70949, '2.709'],
  [0, '0.000'],
  [0.00042, '4.20e-4'],
  [123456, '1.23e+5'],
])('formatLoss(%d) is %s', (value, text) => {
  expect(formatLoss(value)).toBe(text)
})

test.each([
  [0.42, '0.42 s'],
  [4.24, '4.2 s'],
  [9.96, '10 s'],
  [42.3, '42 s'],
  [59.6, '1 min 0 s'],
  [200, '3 min 20 s'],
  [3599.6, '1 h 0 min'],
  [7500, '2 h 5 min'],
])('formatSeconds(%d) is %s', (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text)
})

test.each([
  [45, '45 s'],
  [80, '1:20 min'],
  [90, '1:30 min'],
  [600, '10 min'],
  [5400, '1:30 h'],
  [7200, '2 h'],
  [3630, '1:00:30 h'],
  [62.5, '62.5 s'],
])('formatElapsedTick(%d) is %s', (seconds, text) => {
  expect(formatElapsedTick(seconds)).toBe(text)
})

describe('formatAgo', () => {
  const now = Date.parse('2026-11-21T12:00:00Z')

  it.each([
    ['2026-11-21T11:59:30Z', 'just now'],
    ['2026-11-21T11:55:00Z', '5 minutes ago'],
    ['2026-11-21T09:30:00Z', '2 hours ago'],
    ['2026-11-20T12:00:00Z', 'yesterday'],
    ['2024-11-20T12:00:00Z', '2 years ago'],
  ])('says of %s "%s"', (time, text) => {
    expect(formatAgo(time, now)).toBe(text)
  })
})

test('percent, digests and spans', () => {
  expect(formatPercent(58.44)).toBe('58.4 %')
  expect(shortDigest('0123456789abcdef')).toBe('0123456789')
  expect(secondsBetween('2026-11-21T12:00:00Z', '2026-11-21T12:00:01.5Z')).toBe(1.5)
  expect(secondsBetween('2026-11-21T12:00:01Z', '2026-11-21T12:00:00Z')).toBe(0)
})

test('the time of day has no "PM", and midnight is 00', () => {
  expect(formatClock(new Date(2026, 10, 24, 13, 5).getTime())).toBe('13:05')
  expect(formatClock(new Date(2026, 10, 24, 0, 5).getTime())).toBe('00:05')
})

test('a clock tick is the time of day, with the day where there are several, or the day at midnight', () => {
  const at = (...parts: [number, number, number, number]) => new Date(2026, 10, ...parts).getTime() / 1000
  expect(clockTicks([at(21, 14, 5, 0), at(21, 14, 5, 30)])).toEqual(['14:05', '14:05:30'])
  expect(clockTicks([at(21, 23, 0, 0), at(22, 0, 0, 0), at(22, 1, 0, 0)])).toEqual(['23:00', '22 Nov', '01:00'])
  expect(clockTicks([at(21, 12, 0, 0), at(22, 0, 0, 0), at(22, 12, 0, 0)])).toEqual([
    '21 Nov, 12:00',
    '22 Nov',
    '22 Nov, 12:00',
  ])
})

test.each([
  [519.7, '520×'],
  [1.44, '1.4×'],
  [123456, '120,000×'],
])('formatRatio(%d) is %s', (ratio, text) => {
  expect(formatRatio(ratio)).toBe(text)
})

test('different ticks have different labels, without the noise of the computation', () => {
  expect([2.7000000000000002, 12_345, 1.0425].map(plainTick)).toEqual(['2.7', '12345', '1.0425'])
  expect([1.04e9, 1.042e9, 1.044e9, 0].map(byteTick)).toEqual(['1.04 GB', '1.042 GB', '1.044 GB', '0 B'])
})
