import { expect, test } from 'vitest'

import { eventReader, type ServerEvent } from './server-events'

const STREAM = 'event: text\ndata: {"text": "a: b"}\n\n: ping\n\nevent: end\r\ndata: {}\r\n\r\ndata: one\ndata: two\n\n'
const EVENTS = [
  { event: 'text', data: '{"text": "a: b"}' },
  { event: 'end', data: '{}' },
  { event: '', data: 'one\ntwo' },
]

function read(parts: string[]): ServerEvent[] {
  const events: ServerEvent[] = []
  const take = eventReader((event) => events.push(event))
  parts.forEach(take)
  return events
}

test('events are reported as they are complete, wherever the text is cut', () => {
  expect(read([STREAM])).toEqual(EVENTS)
  expect(read(Array.from(STREAM, (character) => character))).toEqual(EVENTS)
})

test('an incomplete event is not reported', () => {
  expect(read(['event: text\ndata: {}\n'])).toEqual([])
})
