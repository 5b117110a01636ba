import { describe, expect, it } from 'vitest'

import type { RoundUpdate } from '@/api/types'

import { agreementOf, assessNoise, cosineText, errorOf } from './noise-assessment'

const NOISE = { percent: 3.21, advised_percent: 10, most_percent: 50, advice: [] as string[] }
const update: RoundUpdate = {
  round: 1,
  blocks: ['a'],
  sizes: [4],
  step: [0.1],
  weights: [1],
  noise: [0.1],
  update: [0.01],
  K: [2],
  error: { expected: 10, low: 8, high: 12 },
  projection_noise: NOISE,
  agreement: null,
}

describe('assessNoise', () => {
  it('reports that K is large enough, with the number', () => {
    const found = assessNoise(update)
    expect(found?.suffices).toBe(true)
    expect(found?.answer).toContain('3.2 % of the weights')
    expect(found?.ways).toEqual([])
  })
  it('names the changes if it does not', () => {
    const found = assessNoise({
      ...update,
      projection_noise: { ...NOISE, percent: 42, advice: ['algorithm.K = 9000'] },
    })
    expect(found?.suffices).toBe(false)
    expect(found?.answer).toMatch(/^K is smaller than advised: /)
    expect(found?.ways).toEqual(['algorithm.K = 9000'])
  })
  it('does not blame K where more of it would not help', () => {
    const found = assessNoise({
      ...update,
      projection_noise: { ...NOISE, percent: 42, advice: ['server.learning_rate = 0.1'] },
    })
    expect(found?.answer).toMatch(/^The noise is larger than advised/)
  })
  it('has nothing to say of algorithms without K', () => {
    expect(assessNoise({ ...update, projection_noise: null })).toBeNull()
    expect(errorOf({ ...update, error: null })).toBeNull()
  })
})

describe('errorOf', () => {
  it('gives the ratio, its range and the cosine', () => {
    expect(errorOf(update)).toContain('10 times as long as the update (between 8 and 12); their cosine is about 0.1.')
  })
})

describe('agreementOf', () => {
  const participants = ['a', 'b', 'c']
  it('counts the pairs that K is too small for', () => {
    const text = agreementOf({ participants, display_names: {}, cosines: [0.2, 0.9, null], errors: [0.4, 0.1, null] })
    expect(text).toContain('0.55 ± 0.21')
    expect(text).toContain('Of 2 pairs, K is too small to distinguish 1')
  })
  it('has no error where nothing is estimated', () => {
    const text = agreementOf({ participants, display_names: {}, cosines: [0.5, 0.5, 0.5], errors: [0, 0, 0] })
    expect(text).toBe("Two participants' updates have a cosine of 0.5 on average.")
  })
  it('averages only what can be measured', () => {
    const text = agreementOf({ participants, display_names: {}, cosines: [0.5, -6, null], errors: [0.1, 5.5, null] })
    expect(text).toContain('0.5 ± 0.1')
    expect(text).toContain('Of 2 pairs, K is too small to distinguish 1')
    const none = agreementOf({ participants: ['a', 'b'], display_names: {}, cosines: [-6], errors: [5.5] })
    expect(none).toBe("K is too small to measure the cosine between two participants' updates.")
  })
  it('leaves out participants that did not move', () => {
    expect(agreementOf({ participants: ['a', 'b'], display_names: {}, cosines: [null], errors: [null] })).toBeNull()
  })
})

describe('cosineText', () => {
  it('shows the error next to the cosine', () => {
    expect(cosineText(0.2, 0.41)).toBe('0.20 ± 0.41')
    expect(cosineText(0.2, 0)).toBe('0.20')
    expect(cosineText(null, null)).toBe('no change')
    expect(cosineText(-6, 5.5)).toBe('not measurable')
  })
})
