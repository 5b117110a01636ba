import { expect, test } from 'vitest'

import { domainOf, shadeOf, shades, SHADES } from './scale'

test.each([false, true])('lightness goes one way, away from the ground, dark: %s', (dark) => {
  const light = shades(dark).map(([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue)
  expect(light).toHaveLength(SHADES)
  const steps = light.slice(1).map((value, index) => value - (light[index] ?? 0))
  expect(steps.filter((step) => (dark ? step < -0.5 : step > 0.5))).toEqual([])
})

test('outliers and non-numbers do not stretch a scale', () => {
  const values = Float64Array.from({ length: 1000 }, (_, index) => (index === 0 ? 1e9 : 1 + index / 1000))
  values[1] = NaN
  const domain = domainOf(values)
  expect(domain?.high).toBeLessThan(2)
  expect(domain?.log).toBe(false)
  expect(domainOf(Float64Array.of(NaN, NaN))).toBeUndefined()
})

test('values have shades from the first to the last, also far apart and all the same', () => {
  const even = { low: 0, high: 10, log: false }
  expect([-1, 0, 5, 10, 99].map((value) => shadeOf(value, even))).toEqual([0, 0, 32, 63, 63])
  const wide = domainOf(Float64Array.of(1, 10, 100, 1000))
  expect(wide).toEqual({ low: 1, high: 1000, log: true })
  expect(wide && [1, 31.7, 1000].map((value) => shadeOf(value, wide))).toEqual([0, 32, 63])
  expect(shadeOf(7, { low: 7, high: 7, log: false })).toBe(32)
})
