const answer = await mock.echo({ items: [1] });
return answer.structuredContent;
