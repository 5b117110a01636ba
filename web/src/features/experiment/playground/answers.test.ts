// @vitest-environment jsdom
import { expect, test } from 'vitest'

import { asked, heard, progressText } from './answers'

test('the parts of an answer are put together, each on its side', () => {
  let answers = asked(['tuned', 'base'])
  answers = heard(answers, 'waiting', { seconds: 2.4 })
  expect(answers.waited).toBe(2.4)
  answers = heard(answers, 'loading', { side: 'tuned', round: 3 })
  expect(answers.waited).toBeUndefined()
  for (const text of ['Anna', ' has']) answers = heard(answers, 'text', { side: 'tuned', text })
  expect(answers.sides.tuned).toMatchObject({ state: 'answering', text: 'Anna has' })
  answers = heard(answers, 'done', { side: 'tuned', tokens: 2, seconds: 0.5, ended: 'model' })
  answers = heard(answers, 'end', {})
  expect(answers.sides.tuned).toMatchObject({ state: 'done', text: 'Anna has', tokens: 2 })
  expect(answers.sides.base).toMatchObject({ state: 'waiting', text: '' })
})

test('the progress of an answer is shown in words', () => {
  const { tuned } = asked(['tuned']).sides
  if (tuned === undefined) throw new Error('it was asked')
  expect(progressText(tuned, undefined, false)).toBe('waiting')
  expect(progressText(tuned, 3.2, false)).toBe('waiting for a worker, 3 s')
  expect(progressText({ ...tuned, state: 'loading' }, undefined, false)).toBe('loading the model')
  expect(progressText({ ...tuned, state: 'answering', text: 'a' }, undefined, true)).toBe('interrupted')
  expect(progressText(tuned, undefined, true)).toBe('no answer')
  const done = { ...tuned, state: 'done' as const, text: 'a', tokens: 1, seconds: 0.5 }
  expect(progressText({ ...done, text: '' }, undefined, true)).toBe('an empty answer · 1 token in 0.50 s')
  expect(progressText({ ...done, ended: 'model' }, undefined, true)).toBe('1 token in 0.50 s')
  expect(progressText({ ...done, ended: 'length' }, undefined, true)).toBe(
    '1 token in 0.50 s · cut off at the maximum length',
  )
})
