import { expect, test } from 'vitest'

import { csvOf } from './csv'

const DATA = {
  x: [0, 10.5],
  rounds: [0, 1],
  lines: [
    [7.5, 0.123456789],
    [undefined, null],
  ],
}

test('every value with all its digits; what is not a number is marked', () => {
  expect(csvOf(DATA, 'round', ['eval_loss', 'train_loss'])).toBe(
    'round,eval_loss,train_loss\r\n0,7.5,\r\n1,0.123456789,NaN\r\n',
  )
})

test('another axis has a separate column', () => {
  expect(csvOf(DATA, 'time', ['a', 'b']).split('\r\n')[2]).toBe('1,10.5,0.123456789,NaN')
  expect(csvOf(DATA, 'clock', ['a', 'b']).split('\r\n')[1]).toBe('0,1970-01-01T00:00:00.000Z,7.5,')
})

test('thinned out values come with their rounds and bounds', () => {
  const thinned = { firsts: [1], least: [[0.5]], greatest: [[null]] }
  const data = { x: [8], rounds: [8], lines: [[2]], thinned }
  expect(csvOf(data, 'round', ['loss'])).toBe('first_round,round,loss,loss_min,loss_max\r\n1,8,2,0.5,NaN\r\n')
})
