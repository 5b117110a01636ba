function e(e){let t=e.filter(e=>e.kind===`checkpoint`);return[...new Set(t.map(e=>e.round))].sort((e,t)=>t-e).map(e=>({round:e,files:t.filter(t=>t.round===e).sort((e,t)=>e.name.localeCompare(t.name))}))}function t(e){return`ferret experiment export ${e} checkpoint`}var n=`from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("checkpoint")
tokenizer = AutoTokenizer.from_pretrained("checkpoint")`;export{e as n,t as r,n as t};